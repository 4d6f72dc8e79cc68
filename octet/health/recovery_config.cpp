#include "octet/health/recovery_config.hpp"

namespace octet::health {

void ActionLimit::fields(config::FieldVisitor& v) {
  v.field("most", most, "uses of this action within so many steps; 0: never", {.at_least = 0, .at_most = 1000});
  v.field("within", within, "steps in which uses are counted", {.at_least = 1});
}

void RecoveryConfig::Skip::fields(config::FieldVisitor& v) {
  v.field("loss", loss, "robust deviations of a loss above the median of 64 steps beyond which a step is skipped; 0: no limit",
          {.at_least = 0, .at_most = 1e9});
  v.field("grad_norm", grad_norm, "the same for the gradient norm, as a factor of the median; 0: no limit",
          {.at_least = 0, .at_most = 1e9});
  ActionLimit::fields(v);
}

void RecoveryConfig::Rate::fields(config::FieldVisitor& v) {
  v.field("factor", factor, "factor of the learning rate", {.above = 0, .below = 1});
  v.field("steps", steps, "steps after which the learning rate is restored", {.at_least = 1});
  ActionLimit::fields(v);
}

void RecoveryConfig::Layers::fields(config::FieldVisitor& v) {
  v.field("recipe", recipe, "recipe of the offending layers meanwhile");
  v.field("steps", steps, "steps after which they return to their own precision", {.at_least = 1});
  ActionLimit::fields(v);
}

void RecoveryConfig::RollBack::fields(config::FieldVisitor& v) {
  v.field("before", before, "steps before the incident whose data is skipped, too", {.at_least = 0, .at_most = 1e6});
  ActionLimit::fields(v);
}

void RecoveryConfig::fields(config::FieldVisitor& v) {
  v.choice("mode", mode,
           "what happens after alerts of the training itself; advise: events tell what act would do; docs/health.md explains it",
           {{"off", Mode::off}, {"advise", Mode::advise}, {"act", Mode::act}});
  v.field("patience", patience, "steps after which the next action follows an incident that persists, and good steps that end one",
          {.at_least = 1, .at_most = 1e6});
  v.section("skip", skip, "action 1: skip a step beyond limits from the record");
  v.section("rate", rate, "action 2: a lower learning rate for some steps");
  v.section("layers", layers, "action 3: the offending layers in another precision for some steps");
  v.section("roll_back", roll_back, "action 4: back to a checkpoint before the incident, without the data since then");
  const bool off = mode == Mode::off;
  for (const char* key :
       {"patience", "skip.loss", "skip.grad_norm", "skip.most", "skip.within", "rate.factor", "rate.steps", "rate.most", "rate.within",
        "layers.recipe", "layers.steps", "layers.most", "layers.within", "roll_back.before", "roll_back.most", "roll_back.within"})
    v.idle(key, off, "recovery.mode is \"off\"");
}

}  // namespace octet::health
