#include <algorithm>

#include "octet/health/families.hpp"
#include "octet/telemetry/throttling.hpp"

namespace octet::health {
namespace {

/// gpu_hot and gpu_throttled: the GPUs of all ranks. Each rule has one subject, since ranks are known with the first event only.
class GpuRules final : public Family {
 public:
  explicit GpuRules(const AlertsConfig& config) : hot_("gpu_hot", config), throttled_("gpu_throttled", config) {}
  using Family::take;
  void take(const telemetry::GpusEvent&, Alerts&) override;
  void visit_state(StateVisitor&) override;

 private:
  void heat(const telemetry::GpusEvent&, Alerts&);
  void clocks(const telemetry::GpusEvent&, Alerts&);

  Alarm hot_, throttled_;
  double hot_for_ = 0, throttled_for_ = 0;  // measurements in a row, as far as they count
};

void GpuRules::take(const telemetry::GpusEvent& e, Alerts& out) { heat(e, out), clocks(e, out); }

void GpuRules::heat(const telemetry::GpusEvent& e, Alerts& out) {
  double most = NAN;
  std::size_t rank = 0;
  for (std::size_t i = 0; i < e.temperature.size(); ++i)
    if (!(double(e.temperature[i]) <= most) && !std::isnan(e.temperature[i])) most = double(e.temperature[i]), rank = i;
  const double window = double(hot_.window());
  hot_for_ = most >= hot_.threshold() ? std::min(hot_for_ + 1, window) : 0;
  if (hot_.fires(hot_for_ >= window))
    out.add(hot_, format("rank {}", rank), most, format("the GPU of rank {} has {} degrees Celsius", rank, digits(most)));
}

void GpuRules::clocks(const telemetry::GpusEvent& e, Alerts& out) {
  const auto bad = std::ranges::find_if(e.throttling, [](std::int64_t bits) { return (bits & telemetry::bad_throttling) != 0; });
  throttled_for_ = bad != e.throttling.end() ? std::min(throttled_for_ + 1, std::max(throttled_.threshold(), 1.0)) : 0;
  if (!throttled_.fires(throttled_for_ > 0 && throttled_for_ >= throttled_.threshold())) return;
  const auto rank = std::size_t(bad - e.throttling.begin());
  out.add(throttled_, format("rank {}", rank), throttled_for_,
          format("the GPU of rank {} lowers its clock, to {} MHz: {}", rank, digits(double(e.sm_clock[rank])),
                 telemetry::throttling_text(*bad & telemetry::bad_throttling)));
}

void GpuRules::visit_state(StateVisitor& v) {
  v.section("hot", hot_), v.section("throttled", throttled_);
  v.state("hot_for", hot_for_), v.state("throttled_for", throttled_for_);
}

}  // namespace

std::unique_ptr<Family> gpu_rules(const AlertsConfig& config, const Subject&) { return std::make_unique<GpuRules>(config); }

}  // namespace octet::health
