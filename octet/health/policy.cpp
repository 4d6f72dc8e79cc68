#include "octet/health/policy.hpp"

#include <algorithm>

#include "octet/base/text.hpp"
#include "octet/health/alarm.hpp"
#include "octet/health/text_state.hpp"

namespace octet::health {
namespace {

constexpr std::size_t most_layers = 8;  // that one incident takes to the safer recipe
constexpr double returned = 0.5;        // of the threshold of loss_rise: a level below it is as before

}  // namespace

Policy::Policy(const RecoveryConfig& config, const AlertsConfig& alerts, const Subject& subject)
    : config_(config),
      divergence_(alerts.threshold(rule("divergence"))),
      rise_(alerts.threshold(rule("loss_rise"))),
      reference_(config.skip) {
  for (const telemetry::QuantizerFacts& q : subject.quantizers)
    if (std::ranges::find(layers_, q.path) == layers_.end()) layers_.push_back(q.path);
}

const ActionLimit& Policy::limit(RecoveryAction r) const {
  static constexpr ActionLimit once{.most = 1, .within = 1};
  switch (r) {
    case RecoveryAction::skip: return config_.skip;
    case RecoveryAction::rate: return config_.rate;
    case RecoveryAction::layers: return config_.layers;
    case RecoveryAction::roll_back: return config_.roll_back;
    case RecoveryAction::stop:
    case RecoveryAction::none: break;
  }
  return once;
}

// Once a higher action acts, updates must happen to have an effect.
Limits Policy::armed() const {
  const bool above = incident_.open && incident_.action > RecoveryAction::skip && incident_.action != RecoveryAction::none;
  return above || used_up(RecoveryAction::skip) ? Limits() : reference_.limits();
}

Orders Policy::orders() const {
  if (!acts()) return {};
  return {.acts = true,
          .limits = armed(),
          .rate_factor = std::pow(config_.rate.factor, double(uses_[std::size_t(RecoveryAction::rate)].count(clock_, config_.rate.steps))),
          .pass_data = passed_data_.before(step_ + 1),
          .incident = incident_.open};
}

void Policy::take(const telemetry::AlertEvent& a) {
  if (enabled() && rule(a.rule).first != RecoveryAction::none) alerts_.push_back(a);
}

Policy::Events Policy::take(const telemetry::StepEvent& e) {
  Events out;
  now_ = e, step_ = e.step;
  const Limits limits = armed(), good = reference_.limits();
  ++clock_;
  if (enabled()) decide(e, limits, good, out);
  if (!e.skipped && std::isfinite(e.loss) && std::isfinite(e.grad_norm))
    reference_.add(e.loss, e.grad_norm, !good.exceeded(e.loss, e.grad_norm));
  alerts_.clear();
  return out;
}

void Policy::decide(const telemetry::StepEvent& e, const Limits& limits, const Limits& good, Events& out) {
  const bool limited = acts() ? e.limited : !e.skipped && limits.exceeded(e.loss, e.grad_norm);
  const bool begins = !incident_.open && (!alerts_.empty() || limited || good.exceeded(e.loss, e.grad_norm));
  if (begins) open(e);
  if (incident_.open) note_alerts();
  skipped(e, limits, limited, out);
  end_windows(out);
  if (incident_.open) proceed(e, begins, limited, out);
}

void Policy::open(const telemetry::StepEvent& e) {
  const std::string limit = e.loss > reference_.limits().loss ? "loss_spike" : "grad_norm_spike";
  incident_ = {.open = true, .rule = alerts_.empty() ? limit : alerts_[0].rule, .alert_step = e.step, .since = clock_};
  if (!alerts_.empty()) incident_.path = alerts_[0].path;
  incident_.first = first_of(e.step - rule(incident_.rule).lead);
}

void Policy::note_alerts() {
  std::vector<std::string>& layers = incident_.layers;
  for (const telemetry::AlertEvent& a : alerts_) {
    if (a.rule == "loss_rise") incident_.rises = true, incident_.first = std::min(incident_.first, first_of(a.step - rule(a.rule).lead));
    if (const std::string layer = layer_of(a.path, layers_);
        !layer.empty() && layers.size() < most_layers && std::ranges::find(layers, layer) == layers.end())
      layers.push_back(layer);
  }
}

void Policy::skipped(const telemetry::StepEvent& e, const Limits& limits, bool limited, Events& out) {
  const bool loss = e.loss > limits.loss;
  if (limited) {
    use(RecoveryAction::skip);
    acted(RecoveryAction::skip);
    tell(RecoveryAction::skip, acts() ? Result::done : Result::advised,
         format("{} {} is above the limit {}", loss ? "loss" : "gradient norm", digits(loss ? e.loss : e.grad_norm),
                digits(loss ? limits.loss : limits.grad_norm)) +
             (acts() ? "; the step was skipped, and weights and moments are unchanged" : "; the step would be skipped"),
         out);
  } else if (e.skipped && incident_.open && incident_.action == RecoveryAction::none) {
    acted(RecoveryAction::skip);
    tell(RecoveryAction::skip, Result::done, "a value is not finite; the step was skipped, as in every mode", out);
  }
}

void Policy::end_windows(Events& out) {
  const Uses& rate = uses_[std::size_t(RecoveryAction::rate)];
  const std::int64_t before = rate.count(clock_ - 1, config_.rate.steps), now = rate.count(clock_, config_.rate.steps);
  if (now < before && acts())
    tell(RecoveryAction::rate, Result::ended, format("the learning rate has {} of its schedule again", digits(orders().rate_factor)), out);
  if (!safer_.empty() && clock_ - safer_since_ >= config_.layers.steps) request_ = {.action = RecoveryAction::layers};
}

bool Policy::lost(const telemetry::StepEvent& e) const {
  if (e.skipped || !std::isfinite(e.loss) || !std::isfinite(e.grad_norm)) return true;
  if (incident_.rule == "divergence" && divergence_ > 0 && e.loss > divergence_ * reference_.best_loss()) return true;
  return reference_.limits().exceeded(e.loss, e.grad_norm);
}

bool Policy::ill(const telemetry::StepEvent& e) const { return lost(e) || (incident_.rises && reference_.level() >= returned * rise_); }

// One step of an open incident.
void Policy::proceed(const telemetry::StepEvent& e, bool begins, bool limited, Events& out) {
  const RecoveryAction first = rule(incident_.rule).first;
  if (begins && first != RecoveryAction::skip) return incident_.action = RecoveryAction(int(first) - 1), climb(out);
  const bool bad = ill(e), waits = clock_ - incident_.since < config_.patience;
  incident_.calm = bad ? 0 : incident_.calm + 1;
  if (incident_.calm >= config_.patience) {
    tell(incident_.action, Result::recovered,
         format("{} good steps in a row{}", incident_.calm, incident_.action == RecoveryAction::none ? "; nothing was done" : ""), out);
    return close();
  }
  if (!bad || limited) return;
  const bool skips = incident_.action == RecoveryAction::skip || incident_.action == RecoveryAction::none;
  if (skips ? e.skipped && waits : waits) return;
  if (skips) incident_.action = RecoveryAction::skip;  // an applied step beyond the limits: skipping is used up
  climb(out);
}

void Policy::acted(RecoveryAction r) {
  if (incident_.action == RecoveryAction::none || incident_.action <= r) incident_.action = r, incident_.since = clock_;
}

// The next action that can be used.
void Policy::climb(Events& out) {
  if (request_.action != RecoveryAction::none) return;
  for (int r = int(incident_.action) + 1; r <= int(RecoveryAction::stop); ++r)
    if (try_action(RecoveryAction(r), out)) return;
}

// Whether the ladder is left there for now.
bool Policy::try_action(RecoveryAction r, Events& out) {
  // A run whose loss is good is not ended, nor one whose loss is higher, and may be that of other data.
  if ((r == RecoveryAction::roll_back && !ill(now_)) || (r == RecoveryAction::stop && !lost(now_))) return true;
  acted(r);
  if (r != RecoveryAction::stop && used_up(r)) {
    tell(r, Result::refused,
         limit(r).most == 0 ? "the configuration forbids it" : format("it was used {} times in {} steps", limit(r).most, limit(r).within),
         out);
    return false;
  }
  switch (r) {
    case RecoveryAction::rate: return lower_rate(out);
    case RecoveryAction::layers: return change_layers(out);
    case RecoveryAction::roll_back: return roll_back(out);
    default: return stop(out), true;
  }
}

bool Policy::lower_rate(Events& out) {
  if (now_.skipped && !now_.limited)
    return tell(RecoveryAction::rate, Result::refused, "steps are skipped, so the learning rate has no effect", out), false;
  use(RecoveryAction::rate);
  tell(RecoveryAction::rate, acts() ? Result::done : Result::advised,
       format("the learning rate is multiplied by {} for {} steps", config_.rate.factor, config_.rate.steps), out);
  return true;
}

bool Policy::change_layers(Events& out) {
  if (incident_.layers.empty())
    return tell(RecoveryAction::layers, Result::refused, "no alert of this incident names a layer with 8-bit operands", out), false;
  std::vector<std::string> layers = safer_;
  for (const std::string& l : incident_.layers)
    if (std::ranges::find(layers, l) == layers.end()) layers.push_back(l);
  if (acts()) return request_ = {.action = RecoveryAction::layers, .layers = std::move(layers)}, true;
  use(RecoveryAction::layers);
  tell(RecoveryAction::layers, Result::advised,
       format("{} would run in {} for {} steps", joined(incident_.layers), config_.layers.recipe, config_.layers.steps), out);
  return true;
}

bool Policy::roll_back(Events& out) {
  if (acts()) return request_ = {.action = RecoveryAction::roll_back, .before = incident_.first}, true;
  use(RecoveryAction::roll_back);
  tell(RecoveryAction::roll_back, Result::advised,
       format("the run would go back to a checkpoint before step {}, and pass over the data of steps {} to {}", incident_.first,
              incident_.first, now_.step),
       out);
  return true;
}

void Policy::stop(Events& out) {
  const std::string place = incident_.path.empty() ? "" : " in " + incident_.path;
  const std::string reason = format("the incident that began with {}{} in step {} persists, and no other action is left", incident_.rule,
                                    place, incident_.alert_step);
  tell(RecoveryAction::stop, acts() ? Result::done : Result::advised, reason, out);
  if (acts()) request_ = {.action = RecoveryAction::stop, .reason = reason};
}

Policy::Events Policy::answer(const Answer& a) {
  Events out;
  const Request asked = std::exchange(request_, {});
  if (asked.action == RecoveryAction::layers) {
    answer_layers(asked, a, out);
  } else if (asked.action == RecoveryAction::roll_back) {
    answer_roll_back(a, out);
  }
  return out;
}

void Policy::answer_layers(const Request& asked, const Answer& a, Events& out) {
  if (asked.layers.empty()) {
    tell(RecoveryAction::layers, a.done ? Result::ended : Result::refused, a.text, out);
    safer_since_ = clock_;  // if it was impossible, the window begins again
    if (a.done) safer_.clear();
    else out.back().layers = safer_;
    return;
  }
  tell(RecoveryAction::layers, a.done ? Result::done : Result::refused, a.text, out);
  if (!a.done) return climb(out);
  use(RecoveryAction::layers);
  safer_ = out.back().layers = asked.layers, safer_since_ = clock_;
}

// Without a checkpoint from before the time in which the cause may have begun, one from before the alert is better than none.
void Policy::answer_roll_back(const Answer& a, Events& out) {
  tell(RecoveryAction::roll_back, a.done ? Result::done : Result::refused, a.text, out);
  const std::int64_t latest = first_of(incident_.alert_step);
  if (!a.done && incident_.first < latest) return incident_.first = latest, void(roll_back(out));
  if (!a.done) return climb(out);
  out.back().back_to = a.back_to;
  use(RecoveryAction::roll_back);
  passed_data_.add(incident_.first, now_.step);
  step_ = a.back_to;
  safer_ = out.back().layers = a.layers, safer_since_ = clock_;
  close();
}

// Its reason stays that of windows which end later.
void Policy::close() {
  incident_.open = false, incident_.action = RecoveryAction::none;
  incident_.layers.clear();
}

void Policy::tell(RecoveryAction r, Result result, const std::string& text, Events& out) {
  constexpr std::string_view names[] = {"done", "advised", "refused", "ended", "recovered"};
  out.push_back({.step = now_.step,
                 .time = now_.time,
                 .rung = std::string(name(r)),
                 .result = std::string(names[std::size_t(result)]),
                 .rule = incident_.rule,
                 .path = incident_.path,
                 .alert_step = incident_.alert_step,
                 .text = text});
}

void Policy::visit_state(StateVisitor& v) {
  v.section("reference", reference_), v.section("incident", incident_), v.section("passed_data", passed_data_);
  for (int r = 0; r < recovery_actions; ++r) v.section(name(RecoveryAction(r)), uses_[r]);
  visit_texts(v, "safer", safer_);
  v.state("clock", clock_), v.state("safer_since", safer_since_), v.state("step", step_);
}

}  // namespace octet::health
