#pragma once

#include "octet/health/alerts_config.hpp"
#include "octet/health/family.hpp"
#include "octet/health/incident.hpp"
#include "octet/health/passed_data.hpp"
#include "octet/health/reference.hpp"
#include "octet/health/uses.hpp"

namespace octet::health {

/// Conditions of the next step, by decisions of the policy.
struct Orders {
  bool acts = false;  // recovery.mode = "act"
  Limits limits;
  double rate_factor = 1;      // of the learning rate
  std::int64_t pass_data = 0;  // steps whose data is passed over before it
  bool incident = false;       // one is open: the state may be bad, and is not saved by schedule
};

/// An action that the run shall try now, which may be impossible. At most one at a time, to be answered before the next step.
struct Request {
  RecoveryAction action = RecoveryAction::none;  // layers, roll_back or stop
  std::vector<std::string> layers{};             // layers: exactly those that run in the safer recipe from now on
  std::int64_t before = 0;                       // roll_back: to a checkpoint of a step before this one
  std::string reason{};                          // stop
};
struct Answer {
  bool done = false;
  std::string text{};                 // the action, or why it is impossible
  std::int64_t back_to = -1;          // roll_back: the step of the checkpoint
  std::vector<std::string> layers{};  // roll_back: those that are in the safer recipe there
};

/// The recovery ladder of a run: decides after each step what happens about alerts of the training itself. Decisions are a pure function
/// of the events, in their order, and of answers, which are events, too. Its state is bounded.
///
/// An incident begins with an alert, or with a step beyond the limits of Reference, which follows the run in every mode: one that is
/// resumed in another mode has limits at once. Its alert's rule says the first action. An action that is used up, impossible, or has no
/// effect for RecoveryConfig::patience steps leads to the next. As many good steps end the incident.
class Policy {
 public:
  using Events = std::vector<telemetry::RecoveryEvent>;
  Policy(const RecoveryConfig&, const AlertsConfig&, const Subject&);

  bool enabled() const { return config_.mode != RecoveryConfig::Mode::off; }
  /// An alert of the step whose event follows.
  void take(const telemetry::AlertEvent&);
  /// The step; returns the actions after it, done or advised.
  Events take(const telemetry::StepEvent&);
  /// For the next step. Those of a mode other than `act` change nothing.
  Orders orders() const;
  const Request& request() const { return request_; }
  Events answer(const Answer&);
  /// All layers returned to their own precision, since the mode is another one now.
  void forget_layers() { safer_.clear(); }
  void visit_state(StateVisitor&);

 private:
  enum class Result : std::uint8_t { done, advised, refused, ended, recovered };
  bool acts() const { return config_.mode == RecoveryConfig::Mode::act; }
  Limits armed() const;
  const ActionLimit& limit(RecoveryAction) const;
  bool used_up(RecoveryAction r) const { return uses_[std::size_t(r)].used_up(clock_, limit(r)); }
  void use(RecoveryAction r) { uses_[std::size_t(r)].add(clock_, limit(r)); }
  /// The step must not stay as it is; and: it is no good one of its incident.
  bool lost(const telemetry::StepEvent&) const;
  bool ill(const telemetry::StepEvent&) const;
  /// The first step of an incident whose cause is of this one.
  std::int64_t first_of(std::int64_t cause) const { return std::max<std::int64_t>(1, cause - config_.roll_back.before); }
  void decide(const telemetry::StepEvent&, const Limits& limits, const Limits& good, Events&);
  void open(const telemetry::StepEvent&);
  void note_alerts();
  void skipped(const telemetry::StepEvent&, const Limits&, bool limited, Events&);
  void end_windows(Events&);
  void proceed(const telemetry::StepEvent&, bool begins, bool limited, Events&);
  void climb(Events&);
  bool try_action(RecoveryAction, Events&);
  bool lower_rate(Events&);
  bool change_layers(Events&);
  bool roll_back(Events&);
  void stop(Events&);
  void acted(RecoveryAction);
  void answer_layers(const Request& asked, const Answer&, Events&);
  void answer_roll_back(const Answer&, Events&);
  void close();
  void tell(RecoveryAction, Result, const std::string& text, Events&);

  RecoveryConfig config_;
  std::vector<std::string> layers_;  // that have quantizers
  double divergence_, rise_;         // thresholds of these rules
  Reference reference_;
  Incident incident_;
  Uses uses_[recovery_actions];
  PassedData passed_data_;
  std::vector<std::string> safer_;
  std::int64_t clock_ = 0, safer_since_ = 0;  // steps that the run has made, also those that it made again
  std::int64_t step_ = 0;                     // the last one
  // Between the events of one step and its decisions.
  std::vector<telemetry::AlertEvent> alerts_;
  telemetry::StepEvent now_;
  Request request_;
};

}  // namespace octet::health
