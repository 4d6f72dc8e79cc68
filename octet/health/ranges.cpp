#include "octet/health/ranges.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "octet/base/text.hpp"
#include "octet/tensor/dtype.hpp"

namespace octet::health {

double rounding_sqnr(const std::string& format) {
  const int bits = format == name(DType::e4m3) ? E4M3::mantissa_bits : format == name(DType::e5m2) ? E5M2::mantissa_bits : -1;
  return bits < 0 ? NAN : 10 * std::log10(12 * 3 / (2 * std::numbers::ln2) * std::pow(4, bits));
}

RangeRules::RangeRules(const AlertsConfig& config, const Subject& subject)
    : quantizers_(subject.quantizers),
      saturated_{Alarm("saturated", config, quantizers_.size()), std::vector<double>(quantizers_.size(), 0)},
      flushed_{Alarm("flushed", config, quantizers_.size()), std::vector<double>(quantizers_.size(), 0)},
      sqnr_{Alarm("sqnr", config, quantizers_.size()), std::vector<double>(quantizers_.size(), 0)} {
  for (const telemetry::QuantizerFacts& q : quantizers_) rounding_.push_back(rounding_sqnr(q.format));
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
  observe(saturated_, std::move(saturated), e.saturated, "{}: {}% of its values were clipped in two measurements{}", 100, out);
  observe(flushed_, std::move(flushed), e.flushed, "{}: {}% of its non-zero values became 0 in two measurements{}", 100, out);
  observe(sqnr_, std::move(sqnr), e.sqnr_db, "{}: the SQNR is {} dB in two measurements{}", 1, out);
}

void RangeRules::observe(Measured& m, std::vector<double> excess, const std::vector<float>& values, const char* text, double unit,
                         Alerts& out) {
  std::vector<double> both(excess.size());
  for (std::size_t i = 0; i < both.size(); ++i) both[i] = std::min(std::isnan(excess[i]) ? 0 : excess[i], m.last[i]);
  m.last = std::move(excess);
  for (double& x : m.last) x = std::isnan(x) ? 0 : x;
  const auto worst = m.alarm.fires(both);
  if (!worst) return;
  const std::string path = path_of(quantizers_[*worst]);
  out.add(m.alarm, path, values[*worst], format(text, path, digits(unit * values[*worst]), and_more(m.alarm.holding() - 1)));
}

void RangeRules::Measured::visit_state(StateVisitor& v) {
  const std::size_t n = last.size();
  v.section("alarm", alarm), v.state("last", last);
  if (v.restoring()) last.resize(n, 0);
}

void RangeRules::visit_state(StateVisitor& v) {
  v.section("saturated", saturated_), v.section("flushed", flushed_), v.section("sqnr", sqnr_);
}

}  // namespace octet::health
