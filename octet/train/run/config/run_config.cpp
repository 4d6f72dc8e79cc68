#include "octet/train/run/config/run_config.hpp"

#include <algorithm>

#include "octet/machine/machine.hpp"
#include "octet/models/peft_folder.hpp"

namespace octet::train {

namespace {

// The largest count that JSON readers represent exactly: 2^53.
constexpr std::int64_t most_counted = std::int64_t(1) << 53;

constexpr auto may_change = config::OnResume::may_change;

}  // namespace

void LoopConfig::fields(config::FieldVisitor& v) {
  v.field("steps", steps, "optimizer steps; 0: as tokens or max_seconds say", {.at_least = 0}, may_change);
  v.field("tokens", tokens, "tokens to train on, rounded up to whole steps; 0: no such limit", {.at_least = 0}, may_change);
  v.field("max_seconds", max_seconds, "wall time after which the run ends; 0: no such limit", {.at_least = 0, .at_most = 1e9}, may_change);
  v.field("batch", batch, "sequences in a micro-batch", {.at_least = 1, .at_most = 65536});
  v.field("accumulate", accumulate, "micro-batches in an optimizer step", {.at_least = 1, .at_most = 65536});
  v.field("eval_every", eval_every, "steps between evaluations; 0: at the end only", {.at_least = 0}, may_change);
  v.field("eval_tokens", eval_tokens, "held-out tokens in an evaluation, independent of the micro-batch; 0: all", {.at_least = 0},
          may_change);
  v.field("average", average,
          "share of the last steps whose weights are averaged, to be evaluated at the end beside the weights themselves; 0: none",
          {.at_least = 0, .at_most = 1});
  v.field("health_every", health_every, "steps between measurements of saturation, flushing and SQNR", {.at_least = 1}, may_change);
  v.field("max_skipped", max_skipped, "skipped steps in a row after which the run stops, without those that lower the loss scale",
          {.at_least = 1}, may_change);
  v.field("sample_every", sample_every, "steps between samples of text that the model continues; 0: none", {.at_least = 0}, may_change);
  v.field("sample_prompt", sample_prompt, "text that samples continue; empty: the begin of a document", may_change);
  v.field("sample_tokens", sample_tokens, "tokens of a sample", {.at_least = 1, .at_most = 4096}, may_change);
  v.field("sample_temperature", sample_temperature, "of samples: logits are divided by it; 0: always the most likely token",
          {.at_least = 0}, may_change);
  v.field("save_weights", save_weights, "write the final weights, as a Hugging Face folder", may_change);
  for (const char* key : {"sample_prompt", "sample_tokens", "sample_temperature"})
    v.idle(key, sample_every == 0, "train.sample_every is 0");
  v.idle("tokens", steps > 0, "train.steps is set, and decides");
}

void CheckpointConfig::fields(config::FieldVisitor& v) {
  v.field("every", every, "steps between checkpoints; 0: by time alone", {.at_least = 0});
  v.field("minutes", minutes, "wall time after which the next checkpoint is due; 0: by steps alone", {.at_least = 0, .at_most = 1e9});
  v.field("keep", keep, "newest checkpoints to keep; older ones are removed", {.at_least = 1});
}

void TelemetryConfig::fields(config::FieldVisitor& v) {
  v.field("tensorboard", tensorboard, "write event files that TensorBoard shows into the run's folder");
}

void RunConfig::fields(config::FieldVisitor& v) {
  v.field("name", name, "name of the run and of its folder; empty: the recipe's name", may_change);
  v.field("output", output, "folder in which the run's folder is made", may_change);
  v.field("seed", seed, "of the first weights, of the order of the data and of dropout", {.at_least = 0});
  v.choice("device", device, "device that computes; auto: the GPU if one works", {"auto", "cpu", "gpu"}, may_change);
  v.field("deterministic", deterministic, "on a GPU: the same bits in every run, which costs speed and memory; the CPU always gives them",
          may_change);
  v.field("threads", threads, "CPU threads to compute with; 0: one for each processor", {.at_least = 0, .at_most = 256}, may_change);
  v.section("model", model, "which model");
  v.section("recipe", recipe, "in which precision its linear layers run");
  v.section("lora", lora, "adapters that train over the model's frozen weights");
  v.section("dpo", dpo, "preferences: pairs of a chosen and a rejected answer, learned by direct preference optimization");
  v.section("data", data, "on which text");
  v.section("train", train, "how long and in which portions");
  v.section("optim", optim, "the optimizer");
  v.section("loss_scale", loss_scale, "factor of the loss, for gradients of activations that a narrow format would lose");
  v.section("ranks", ranks, "processes or threads that train one model together");
  v.section("comm", comm, "what ranks exchange, and how");
  v.section("checkpoint", checkpoint, "when to save the state of the run", may_change);
  v.section("telemetry", telemetry, "outputs while it trains", may_change);
  v.section("alerts", alerts, "rules over the metrics of the run", may_change);
  v.section("recovery", recovery, "what happens after alerts of the training itself", may_change);
  for (const char* key : {"train.eval_every", "train.eval_tokens", "train.average"})
    v.idle(key, data.eval_fraction == 0 && data.eval_path.empty(), "nothing is held out, as data.eval_fraction is 0");
  for (const char* key : {"start", "growth", "growth_steps", "backoff", "smallest", "largest"})
    v.idle(format("loss_scale.{}", key),
           loss_scale.mode == optim::LossScaleConfig::Mode::automatic && !scaling::has_narrow_range(recipe.recipe),
           format("loss_scale.mode is \"auto\", and gradients of activations have a wide range under {}", recipe.recipe));
  const bool alone = ranks.data == 1 && ranks.of_sequence() == 1;
  for (const char* key : {"comm.gradients", "comm.mu_growth", "comm.overlap", "comm.peer_memory", "ranks.limit_seconds"})
    v.idle(key, alone, "ranks.data = 1: there is one rank");
  for (const char* key : {"comm.experts", "ranks.expert_room"})
    v.idle(key, ranks.expert == 1, "ranks.expert = 1: each rank has all experts");
  v.idle("comm.tensor", ranks.tensor == 1, "ranks.tensor = 1: each rank has whole layers");
  v.idle("comm.turns", ranks.tensor == 1 && ranks.expert == 1, "ranks.tensor and ranks.expert are 1: each rank has whole layers");
  v.idle("comm.turns", train.accumulate == 1, "train.accumulate = 1: a step has one micro-batch, which no other one follows");
  for (const char* key : {"comm.pipeline", "ranks.pipeline_schedule", "ranks.pipeline_chunks"})
    v.idle(key, ranks.pipeline == 1, "ranks.pipeline = 1: each rank has all blocks");
  v.idle("optim.coded_ends", model.mtp_depth > 0, "model.mtp_depth adds to gradients of embedding and head, which stay in FP32");
  v.idle("comm.mu_growth", !comm.has_mu(optim.storage().gradients),
         format("gradients travel as {}", parallel::wire_of(comm.gradients, optim.storage().gradients)));
  // The machine is asked only where it matters.
  const auto on_cpu = [&] { return device == "cpu" || (device == "auto" && machine::device_named(device) == Device::cpu); };
  v.idle("comm.overlap", !comm.overlap && on_cpu(), "on the CPU an exchange is done when its call returns");
  v.idle("comm.peer_memory", !comm.peer_memory && on_cpu(), "CPU ranks exchange through MPI, or as threads");
  v.idle("optim.offload", optim.offload && on_cpu(), "on the CPU everything is in the host's memory");
}

std::int64_t RunConfig::tokens_per_step() const {
  const std::int64_t sequences = train.batch * train.accumulate * ranks.sequence_groups();  // 2^16, 2^16 and 2^10 at most
  if (data.sequence_length > most_counted / sequences)
    throw ConfigError(
        format("train.batch = {} x train.accumulate = {} x ranks.data = {} x data.sequence_length = {}: a step has at most 2^53 tokens",
               train.batch, train.accumulate, ranks.sequence_groups(), data.sequence_length));
  return sequences * data.sequence_length;
}

std::int64_t RunConfig::steps() const {
  if (train.steps > 0) return train.steps;
  if (train.tokens > 0) return ceil_div(train.tokens, tokens_per_step());
  if (train.max_seconds > 0) return 0;
  throw ConfigError("the run has no length: set train.steps, train.tokens or train.max_seconds (--steps, --tokens, --max-time)");
}

namespace {

// At most: a prompt has no more tokens than bytes, and a tokenizer puts a few before it.
std::int64_t sampled_tokens(const RunConfig& c) {
  constexpr std::int64_t begin = 8;
  const std::int64_t prompt = std::int64_t(c.train.sample_prompt.size()) + begin;
  return c.train.sample_every > 0 ? std::min(c.data.sequence_length, prompt + c.train.sample_tokens) : 0;
}

}  // namespace

EngineConfig engine_config(const RunConfig& c) {
  const models::ModelShape shape = c.model.shape();
  if (c.data.sequence_length > shape.max_sequence)
    throw ConfigError(format("data.sequence_length = {}: the model {} takes at most {} tokens; shorten it, or choose another model",
                             c.data.sequence_length, printable(c.model.name()), shape.max_sequence));
  return {.shape = shape,
          .model = {.recompute = nn::Recompute::named(c.model.recompute),
                    .recompute_layers = c.model.recompute_layers,
                    .mtp_loss = c.model.mtp_loss},
          .precision = c.recipe,
          .optimizer = c.optim,
          .loss_scale = c.loss_scale,
          .sequence = c.data.sequence_length,
          .sampled = sampled_tokens(c),
          .micro_batches = c.train.accumulate,
          .average = c.train.average > 0,
          .document_mask = c.data.document_mask,
          .comm = c.comm,
          .ranks = c.ranks,
          .planned_ranks = int(c.ranks.of_part()),
          .adapters = models::completed(c.lora, shape),
          .preference = c.dpo,
          .seed = std::uint64_t(c.seed)};
}

}  // namespace octet::train
