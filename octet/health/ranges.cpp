#include <algorithm>
#include <cmath>

#include "octet/base/text.hpp"
#include "octet/health/families.hpp"
#include "octet/telemetry/quantization_loss.hpp"
#include "octet/tensor/dtype.hpp"
#include "octet/tensor/tensor.hpp"

namespace octet::health {

/// saturated, flushed, sqnr: how well the formats' ranges are used. A condition must hold in two measurements.
class RangeRules final : public Family {
 public:
  RangeRules(const AlertsConfig&, const Subject&);
  using Family::take;
  void take(const telemetry::HealthEvent&, Alerts&) override;
  void visit_state(StateVisitor&) override;

 private:
  /// A rule, and its excess in the last measurement.
  struct Measured {
    Alarm alarm;
    std::vector<double> last;
    void visit_state(StateVisitor&);
  };
  /// The words of one of the rules; `remedy` of a tensor, or "" for the rule's own.
  struct Words {
    const char* text;
    double unit;
    std::string (*remedy)(const telemetry::QuantizerFacts&);
  };
  void observe(Measured&, std::vector<double> excess, const std::vector<float>& values, const Words&, Alerts&);

  const std::vector<telemetry::QuantizerFacts> quantizers_;
  std::vector<double> rounding_;  // telemetry::rounding_sqnr of each
  Measured saturated_, flushed_, sqnr_;
};

namespace {

// By the steps that the tensor has not taken yet. A scale of the whole tensor or of rows cancels a loss scale, so that is none of them.
std::string advice(const std::vector<std::string>& left) {
  if (left.empty()) return "Keep its layer in BF16 (recipe.keep_bf16).";
  return format("Use {} for this operand (recipe.rules), or keep its layer in BF16.", joined(left, " or "));
}

bool has_blocks(const telemetry::QuantizerFacts& q) { return q.block != to_text(ScaleBlock{}) && q.block != to_text(ScaleBlock{1, 0}); }

std::string finer_scales(const telemetry::QuantizerFacts& q) {
  return advice(has_blocks(q) ? std::vector<std::string>{} : std::vector<std::string>{"blocks"});
}

std::string wider_range(const telemetry::QuantizerFacts& q) {
  std::vector<std::string> left;
  if (q.format == name(DType::e4m3)) left.emplace_back("E5M2");
  if (!has_blocks(q)) left.emplace_back("blocks");
  return advice(left);
}

}  // namespace

RangeRules::RangeRules(const AlertsConfig& config, const Subject& subject)
    : quantizers_(subject.quantizers),
      saturated_{Alarm("saturated", config, quantizers_.size()), std::vector<double>(quantizers_.size(), 0)},
      flushed_{Alarm("flushed", config, quantizers_.size()), std::vector<double>(quantizers_.size(), 0)},
      sqnr_{Alarm("sqnr", config, quantizers_.size()), std::vector<double>(quantizers_.size(), 0)} {
  for (const telemetry::QuantizerFacts& q : quantizers_) rounding_.push_back(telemetry::rounding_sqnr(q.format));
}

// Step 1 is left out: scales that follow a history begin there.
void RangeRules::take(const telemetry::HealthEvent& e, Alerts& out) {
  const std::size_t n = quantizers_.size();
  if (e.step <= 1 || e.saturated.size() != n || e.flushed.size() != n || e.sqnr_db.size() != n) return;
  std::vector<double> saturated(n), flushed(n), sqnr(n);
  for (std::size_t i = 0; i < n; ++i) {
    saturated[i] = e.saturated[i] / saturated_.alarm.threshold(), flushed[i] = e.flushed[i] / flushed_.alarm.threshold();
    sqnr[i] = (rounding_[i] - e.sqnr_db[i]) / sqnr_.alarm.threshold();
  }
  const auto own = [](const telemetry::QuantizerFacts&) { return std::string(); };
  observe(saturated_, std::move(saturated), e.saturated, {"{}: {}% of its values were clipped in two measurements{}", 100, own}, out);
  observe(flushed_, std::move(flushed), e.flushed, {"{}: {}% of its non-zero values became 0 in two measurements{}", 100, wider_range},
          out);
  observe(sqnr_, std::move(sqnr), e.sqnr_db, {"{}: the SQNR is {} dB in two measurements{}", 1, finer_scales}, out);
}

void RangeRules::observe(Measured& m, std::vector<double> excess, const std::vector<float>& values, const Words& words, Alerts& out) {
  std::vector<double> both(excess.size());
  for (std::size_t i = 0; i < both.size(); ++i) both[i] = std::min(std::isnan(excess[i]) ? 0 : excess[i], m.last[i]);
  m.last = std::move(excess);
  for (double& x : m.last) x = std::isnan(x) ? 0 : x;
  const auto worst = m.alarm.fires(both);
  if (!worst) return;
  const std::string path = path_of(quantizers_[*worst]);
  out.add(m.alarm, path, values[*worst], format(words.text, path, digits(words.unit * values[*worst]), and_more(m.alarm.holding() - 1)),
          words.remedy(quantizers_[*worst]));
}

void RangeRules::Measured::visit_state(StateVisitor& v) {
  const std::size_t n = last.size();
  v.section("alarm", alarm), v.state("last", last);
  if (v.restoring()) last.resize(n, 0);
}

void RangeRules::visit_state(StateVisitor& v) {
  v.section("saturated", saturated_), v.section("flushed", flushed_), v.section("sqnr", sqnr_);
}

std::unique_ptr<Family> range_rules(const AlertsConfig& config, const Subject& subject) {
  return std::make_unique<RangeRules>(config, subject);
}

}  // namespace octet::health
