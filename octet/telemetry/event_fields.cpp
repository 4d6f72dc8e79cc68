#include "octet/telemetry/event_fields.hpp"

#include "octet/telemetry/shared_json.hpp"

// The fields of every event, once: lines are written and read by these lists, and docs/run-folder.md has their words.

namespace octet::telemetry {

void PreferenceFigures::fields(EventVisitor& v) {
  const bool absent = !known();
  double difference = margin();
  v.field({"reward_chosen", "", "mean reward of the chosen answers; only in runs with [`dpo.beta`](dpo.md#what-a-run-shows)", true, absent},
          chosen_reward);
  v.field({"reward_rejected", "", "the same of the rejected answers", true, absent}, rejected_reward);
  v.field({"reward_margin", "", "the difference of both", true, absent}, difference);
  v.field({"reward_accuracy", "", "share of pairs whose chosen answer has the larger reward", true, absent}, accuracy);
  v.field({"logp_chosen", "nats", "mean log-probability of the chosen answers", true, absent}, chosen_log_probability);
  v.field({"logp_rejected", "nats", "the same of the rejected answers", true, absent}, rejected_log_probability);
}

void StepEvent::fields(EventVisitor& v) {
  v.field({"loss", "nats", "mean cross-entropy of the step's tokens, or mean [loss of its pairs](dpo.md#the-loss)"}, loss);
  v.field({"loss_z", "", "distance of the loss from the mean of the last 128 healthy steps, in their standard deviations; null before 16"},
          loss_z);
  v.field({"grad_norm", "", "norm of all gradients before clipping"}, grad_norm);
  v.field({"grad_norm_z", "", "distance of the norm in the same way"}, grad_norm_z);
  v.field({"lr", "", "learning rate"}, learning_rate);
  v.field({"tokens", "", "tokens trained on so far"}, tokens);
  v.field({"seconds", "s", "time of this step"}, seconds);
  v.field({"tokens_per_second", "", "of this step"}, tokens_per_second);
  v.field({"limit_share", "", "estimated least time of the step / `seconds`, see below"}, limit_share);
  v.field({"param_norm", "", "norm of all parameters, updated every `train.health_every` steps"}, param_norm);
  v.field({"data_wait", "s", "time of this step spent waiting for data"}, data_wait);
  v.field({"memory", "bytes", "held at the step's peak"}, memory_bytes);
  v.field({"skipped", "", "true if the weights were not updated"}, skipped);
  v.field({"loss_scale", "", "factor of this step's loss; only in runs with [loss scaling](recipes.md#loss-scaling)", true,
           !std::isfinite(loss_scale)},
          loss_scale);
  v.field({"limited", "", "true if the step was skipped by a limit of [recovery](health.md#recovery); else absent", true, !limited},
          limited);
  v.field({"one_token", "", "share of the targets of rank 0 that are the same token; absent up to a half", true, !(one_token > 0)},
          one_token);
  v.field({"mtp_loss", "nats",
           "mean cross-entropy of further tokens, of all depths together; only in runs with "
           "[`model.mtp_depth`](experts.md#predict-further-tokens)",
           true, !std::isfinite(mtp_loss)},
          mtp_loss);
  preferences.fields(v);
}

void ScalesEvent::fields(EventVisitor& v) {
  v.field({"amax", "", "largest magnitude of each tensor"}, amax);
  v.field({"scale_min", "", "smallest scale of each tensor, which multiplies before encoding"}, scale_min);
  v.field({"scale_max", "", "largest scale of each tensor, which has many with a block layout or experts"}, scale_max);
}

void HealthEvent::fields(EventVisitor& v) {
  v.field({"headroom_bits", "bits", "log2(largest finite value of the format / (amax x scale)); below 0 if values were clipped"},
          headroom_bits);
  v.field({"saturated", "", "fraction of values clipped"}, saturated);
  v.field({"flushed", "", "fraction of non-zero values that became 0"}, flushed);
  v.field({"sqnr_db", "dB", "20 log10(norm of x / norm of x - dequantized x); null if nothing was lost"}, sqnr_db);
  v.field({"nonfinite", "", "count of values that are not finite"}, nonfinite);
  v.field({"scale_deviation", "octaves",
           "standard deviation of log2 of the scales of the tensor's blocks or rows; null if it has one scale, absent if all have", true,
           scale_deviation.empty()},
          scale_deviation);
  v.field(
      {"lossy_blocks", "",
       "share of the tensor's blocks with a clipped or flushed value; null for scales per tensor or row, absent if no tensor has blocks",
       true, lossy_blocks.empty()},
      lossy_blocks);
}

void RanksEvent::fields(EventVisitor& v) {
  v.field({.name = "seconds", .unit = "s", .meaning = "time of the step, without the exchange of this event", .entry = "rank"}, seconds);
  v.field({.name = "waited",
           .unit = "s",
           .meaning = "of these, in collectives, where a rank also waits for slower ones; null on a GPU, whose host does not see them",
           .entry = "rank",
           .entries = seconds.size()},
          waited);
  v.field({.name = "slowest",
           .unit = "",
           .meaning = "the rank with the longest time outside of collectives",
           .high = std::int64_t(seconds.size()) - 1},
          slowest);
  v.field({"sent_bytes", "bytes", "sent by each rank in the step"}, sent_bytes);
}

void SharedScalesEvent::fields(EventVisitor& v) {
  v.field({"mu", "", "factor that leaves room for the sum over ranks, as of the next step ([parallel.md](parallel.md#the-sums))"}, mu);
  v.field({"overflow", "", "share of the sums that have the largest code"}, overflow);
  v.field({"underflow", "", "share of the values of all ranks that were sent as 0 although they are not"}, underflow);
}

void ExpertsEvent::fields(EventVisitor& v) {
  v.field({.name = "experts", .unit = "", .meaning = "routed experts of a layer", .low = 1, .high = most_stated}, experts);
  v.field({"layers", "", "the blocks that have experts"}, layers);
  const std::size_t all = layers.size() * std::size_t(experts);
  v.field({.name = "counts",
           .unit = "",
           .meaning = "how often the tokens of the step, on all ranks, chose each expert: layer by layer",
           .entry = "layer and expert",
           .entries = all},
          counts);
  v.field({.name = "bias",
           .unit = "",
           .meaning = "of each expert's choice, in the same order; absent without `model.router_bias_rate`",
           .may_lack = true,
           .left_out = bias.empty(),
           .entry = "layer and expert",
           .entries = all},
          bias);
}

void EvalEvent::fields(EventVisitor& v) {
  v.field({"loss", "nats", "mean over held-out tokens, or over pairs"}, loss);
  v.field({"tokens", "", "number of these tokens, or of pairs"}, tokens);
  v.field({"average_loss", "nats", "the same of the averaged weights (`train.average`); null where there are none", true}, average_loss);
  preferences.fields(v);
}

void SampleEvent::fields(EventVisitor& v) {
  v.field({"prompt", "", "`train.sample_prompt`"}, prompt);
  v.field({"text", "", "the text behind it"}, text);
  v.field({"tokens", "", "number of tokens of the text"}, tokens);
  v.field({"end", "", "why it ends: `length`, `end of text` (the separator of documents), `not finite` (the logits)"}, end);
}

void IncidentEvent::fields(EventVisitor& v) {
  v.field({"kind", "", "see below"}, kind);
  v.field({"path", "", "the first module with the problem, or empty"}, path);
  v.field({"text", "", "the observation"}, text);
}

void MachineEvent::fields(EventVisitor& v) {
  v.field({"memory_free", "bytes", "of the device that the run could still allocate"}, memory_free);
  v.field({"disk_free", "bytes", "free on the file system of the run's folder"}, disk_free);
  v.field({"checkpoint_bytes", "bytes", "size of the newest checkpoint"}, checkpoint_bytes);
  v.field({"checkpoint_age", "s", "since it was completed, or since the process started if that is later"}, checkpoint_age);
  v.field({"epoch", "", "passes over the data so far"}, epoch);
}

void GpusEvent::fields(EventVisitor& v) {
  v.field({.name = "utilization", .unit = "", .meaning = "mean share of the time in which a kernel ran", .entry = "rank"}, utilization);
  const std::size_t ranks = utilization.size();
  v.field({.name = "power", .unit = "W", .meaning = "mean electric power", .entry = "rank", .entries = ranks}, power);
  v.field({.name = "temperature", .unit = "°C", .meaning = "highest temperature of the GPU", .entry = "rank", .entries = ranks},
          temperature);
  v.field({.name = "sm_clock", .unit = "MHz", .meaning = "mean clock of the multiprocessors", .entry = "rank", .entries = ranks}, sm_clock);
  v.field({.name = "memory_used",
           .unit = "bytes",
           .meaning = "most memory of the GPU in use, by all processes",
           .entry = "rank",
           .entries = ranks},
          memory_used);
  v.field({.name = "throttling",
           .unit = "",
           .meaning = "reasons for a lower clock: a sum of the bits below",
           .entry = "rank",
           .entries = ranks},
          throttling);
}

void AlertEvent::fields(EventVisitor& v) {
  v.field({"rule", "", "the name of the rule"}, rule);
  v.field({"severity", "", "`info`, `warning` or `critical`"}, severity);
  v.field({"path", "", "the tensor with its operand, `rank 3`, or empty"}, path);
  v.field({"value", "", "the compared number"}, value);
  v.field({"threshold", "", "the key `alerts.<rule>`"}, threshold);
  v.field({"window", "", "the steps or measurements that the rule looked at"}, window);
  v.field({"text", "", "the observation with its numbers"}, text);
  v.field({"remedy", "", "the next action"}, remedy);
}

void RecoveryEvent::fields(EventVisitor& v) {
  v.field({"rung", "", "`skip`, `rate`, `layers`, `roll_back` or `stop`; `none` if an incident ended without an action"}, rung);
  v.field({"result", "", "see below"}, result);
  v.field({"rule", "", "of the alert that is the reason"}, rule);
  v.field({"path", "", "of the same alert"}, path);
  v.field({"alert_step", "", "the step of the same alert"}, alert_step);
  v.field({"text", "", "the action with its numbers"}, text);
  v.field({"back_to", "", "only of a `roll_back` that was done: the steps after this one follow again", true, back_to < 0}, back_to);
  v.field({"layers", "", "those that are in `recovery.layers.recipe` from now on; absent if there are none", true, layers.empty()}, layers);
}

void EndEvent::fields(EventVisitor& v) {
  v.field({"reason", "", "why the run ended"}, reason);
  v.field({"train_loss", "nats", "mean over the last 5% of the steps"}, train_loss);
  v.field({"eval_loss", "nats", "of the last evaluation; null where nothing was held out"}, eval_loss);
  v.field({"average_loss", "nats", "as in `eval`", true}, average_loss);
  v.field({"tokens_per_second", "", "median over the steps"}, tokens_per_second);
  v.field({"skipped", "", "number of skipped steps"}, skipped);
}

}  // namespace octet::telemetry
