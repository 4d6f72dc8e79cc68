#include "octet/health/families.hpp"

#include <algorithm>

namespace octet::health {
namespace {

// The extreme of one rule over all layers: its place, and the value that is compared.
struct Extreme {
  std::int64_t layer = 0, expert = 0;
  double value = NAN;
};

/// expert_idle, expert_overload and router_collapse: the loads of experts, layer by layer.
class RouterRules final : public Family {
 public:
  explicit RouterRules(const AlertsConfig&);
  using Family::take;
  void take(const telemetry::ExpertsEvent&, Alerts&) override;
  void visit_state(StateVisitor&) override;

 private:
  Alarm idle_, overload_, collapse_;
  // Measurements in a row in which some layer broke the rule; one subject per rule, since layers are known with the first event only.
  double idle_for_ = 0, overload_for_ = 0, collapse_for_ = 0;
};

std::string place(const Extreme& x) { return format("layers.{}.mlp.experts.{}", x.layer, x.expert); }

RouterRules::RouterRules(const AlertsConfig& config)
    : idle_("expert_idle", config), overload_("expert_overload", config), collapse_("router_collapse", config) {}

void RouterRules::take(const telemetry::ExpertsEvent& e, Alerts& out) {
  Extreme least, most, entropy;
  for (std::size_t i = 0; i < e.layers.size(); ++i) {
    const std::vector<double> loads = telemetry::relative_loads(e, i);
    if (loads.empty()) continue;
    for (std::size_t x = 0; x < loads.size(); ++x) {
      if (!(loads[x] >= least.value)) least = {e.layers[i], std::int64_t(x), loads[x]};
      if (!(loads[x] <= most.value)) most = {e.layers[i], std::int64_t(x), loads[x]};
    }
    if (const double h = telemetry::load_entropy(e, i); !(h >= entropy.value)) entropy = {e.layers[i], 0, h};
  }
  const auto lasts = [](const Alarm& alarm, double& measurements, bool holds) {
    measurements = holds ? std::min(measurements + 1, double(alarm.window())) : 0;
    return alarm.enabled() && measurements >= double(alarm.window());
  };
  if (idle_.fires(lasts(idle_, idle_for_, least.value <= idle_.threshold())))
    out.add(idle_, place(least), least.value,
            format("expert {} of layer {} has {} of the mean load", least.expert, least.layer, digits(least.value)));
  if (overload_.fires(lasts(overload_, overload_for_, most.value >= overload_.threshold())))
    out.add(overload_, place(most), most.value,
            format("expert {} of layer {} has {} times the mean load", most.expert, most.layer, digits(most.value)));
  if (collapse_.fires(lasts(collapse_, collapse_for_, entropy.value <= collapse_.threshold())))
    out.add(collapse_, format("layers.{}.mlp.router", entropy.layer), entropy.value,
            format("the loads of layer {} have {} of the entropy of equal ones", entropy.layer, digits(entropy.value)));
}

void RouterRules::visit_state(StateVisitor& v) {
  v.section("idle", idle_), v.section("overload", overload_), v.section("collapse", collapse_);
  v.state("idle_for", idle_for_), v.state("overload_for", overload_for_), v.state("collapse_for", collapse_for_);
}

}  // namespace

std::unique_ptr<Family> router_rules(const AlertsConfig& config, const Subject&) { return std::make_unique<RouterRules>(config); }

}  // namespace octet::health
