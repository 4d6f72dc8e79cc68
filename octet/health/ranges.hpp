#pragma once

#include "octet/health/family.hpp"

namespace octet::health {

/// SQNR in dB of rounding values that are spread evenly over binades to m mantissa bits: ulp^2 / 12 of noise and 3 / (2 ln 2) of signal in
/// [1, 2), so 10 log10(12 * 3 / (2 ln 2) * 4^m). NaN for a format without an entry.
double rounding_sqnr(const std::string& format);

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
  std::vector<double> rounding_;  // rounding_sqnr of each
  Measured saturated_, flushed_, sqnr_;
};

}  // namespace octet::health
