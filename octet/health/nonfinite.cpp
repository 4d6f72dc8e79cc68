#include <cmath>

#include "octet/base/text.hpp"
#include "octet/health/families.hpp"
#include "octet/health/window.hpp"

namespace octet::health {

/// nonfinite and loss_scale_falls: steps that were skipped because of an infinity or NaN, and the loss scale that answers them.
class NonfiniteRules final : public Family {
 public:
  NonfiniteRules(const AlertsConfig&, const Subject&);
  using Family::take;
  void take(const telemetry::HealthEvent&, Alerts&) override;
  void take(const telemetry::IncidentEvent&, Alerts&) override;
  void take(const telemetry::StepEvent&, Alerts&) override;
  void visit_state(StateVisitor&) override;

 private:
  void skipped(const telemetry::StepEvent&, Alerts&);
  void loss_scale(double scale, Alerts&);

  const std::vector<telemetry::QuantizerFacts> quantizers_;
  Alarm nonfinite_, falls_;
  std::int64_t in_a_row_ = 0;
  Window scales_;
  // Of the current step, until its StepEvent.
  std::string path_, text_;
  bool scale_moved_ = false;
};

NonfiniteRules::NonfiniteRules(const AlertsConfig& config, const Subject& subject)
    : quantizers_(subject.quantizers), nonfinite_("nonfinite", config), falls_("loss_scale_falls", config), scales_(falls_.window()) {}

void NonfiniteRules::take(const telemetry::HealthEvent& e, Alerts&) {
  for (std::size_t i = 0; i < quantizers_.size() && i < e.nonfinite.size(); ++i)
    if (e.nonfinite[i] > 0) return void(path_ = path_of(quantizers_[i]));
}

void NonfiniteRules::take(const telemetry::IncidentEvent& e, Alerts& out) {
  if (e.kind == "loss_scale") scale_moved_ = true;
  if (e.kind != "skipped" && e.kind != "nonfinite") return;
  if (!e.path.empty()) path_ = e.path;
  text_ = e.text;
  // The run ends with this incident: no step follows.
  if (e.kind == "nonfinite" && nonfinite_.fires(true)) out.add(nonfinite_, path_, NAN, text_);
}

void NonfiniteRules::take(const telemetry::StepEvent& e, Alerts& out) {
  if (e.skipped && !e.limited) skipped(e, out);  // beyond a limit its values are finite
  else in_a_row_ = 0, nonfinite_.fires(false);
  if (std::isfinite(e.loss_scale)) loss_scale(e.loss_scale, out);
  path_.clear(), text_.clear(), scale_moved_ = false;
}

void NonfiniteRules::skipped(const telemetry::StepEvent& e, Alerts& out) {
  if (scale_moved_) return;  // a lower loss scale may be the remedy
  ++in_a_row_;
  if (nonfinite_.fires(double(in_a_row_) >= nonfinite_.threshold()))
    out.add(nonfinite_, path_, double(in_a_row_), text_.empty() ? format("step {} was skipped: a value is not finite", e.step) : text_);
}

void NonfiniteRules::loss_scale(double scale, Alerts& out) {
  scales_.add(scale);
  const std::vector<double>& all = scales_.values();
  std::int64_t falls = 0;
  for (std::size_t i = 1; i < all.size(); ++i) falls += all[i] < all[i - 1];
  if (falls_.fires(double(falls) >= falls_.threshold()))
    out.add(falls_, "", double(falls),
            format("the loss scale fell {} times in {} steps, from {} to {}", falls, all.size(), digits(all.front()), digits(scale)));
}

void NonfiniteRules::visit_state(StateVisitor& v) {
  v.section("nonfinite", nonfinite_), v.section("falls", falls_);
  v.count("in_a_row", in_a_row_), v.section("scales", scales_);
}

std::unique_ptr<Family> nonfinite_rules(const AlertsConfig& config, const Subject& subject) {
  return std::make_unique<NonfiniteRules>(config, subject);
}

}  // namespace octet::health
