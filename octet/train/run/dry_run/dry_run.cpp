#include "octet/train/run/dry_run/dry_run.hpp"

#include "octet/data/pair_rows.hpp"
#include "octet/optim/registry.hpp"
#include "octet/tensor/cpu/memory.hpp"
#include "octet/train/run/dry_run/sent_activations.hpp"
#include "octet/train/run/dry_run/sent_boundaries.hpp"
#include "octet/train/run/dry_run/sent_weights.hpp"
#include "octet/train/step/decoder.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/step/step.hpp"

namespace octet::train {
namespace {

using Sent = std::array<comm::Traffic, comm::collectives>;
Sent sent_so_far(Engine& engine) {
  Sent out;
  for (std::size_t c = 0; c < out.size(); ++c) out[c] = engine.traffic(comm::Collective(c));
  return out;
}

// Work and exchanges.
struct StepCost {
  Work work;
  Sent sent;

  friend StepCost operator-(const StepCost& a, const StepCost& b) {
    StepCost out{a.work - b.work, a.sent};
    for (std::size_t c = 0; c < out.sent.size(); ++c) out.sent[c] = a.sent[c] - b.sent[c];
    return out;
  }
  // first + n * more
  static StepCost sum(const StepCost& first, std::int64_t n, const StepCost& more) {
    StepCost out{first.work + n * more.work, first.sent};
    for (std::size_t c = 0; c < out.sent.size(); ++c)
      out.sent[c].calls += n * more.sent[c].calls, out.sent[c].bytes += n * more.sent[c].bytes;
    return out;
  }
};

StepCost cost_of_step(Engine& engine, StepRunner& runner, const std::vector<data::Batch>& micro_batches) {
  const StepCost before{engine.stream.work(), sent_so_far(engine)};
  runner.run(micro_batches, {});
  return StepCost{engine.stream.work(), sent_so_far(engine)} - before;
}

// Micro-batches but the last are alike in work, and each gives its memory back before the next: two suffice to compute any number. Those
// of a pipeline are in flight together, and those of passes in turn.
StepCost cost_of_step(Engine& engine, StepRunner& runner, const data::Batch& shape, std::int64_t accumulate) {
  if (!engine.pipeline.one_by_one()) return cost_of_step(engine, runner, std::vector(std::size_t(accumulate), shape));
  const StepCost one = cost_of_step(engine, runner, std::vector{shape});
  if (accumulate == 1) return one;
  const StepCost two = cost_of_step(engine, runner, std::vector{shape, shape});
  return StepCost::sum(one, accumulate - 1, two - one);
}

// Of gradients.
std::string_view rounding_of(Storage s) {
  if (s == Storage::e4m3) return ", rounded stochastically";
  if (s == Storage::e4m3_tensor || s == Storage::bf16) return ", rounded to nearest even";
  return "";
}

// How each variable of matrices is stored, and whether the level or its own key says so. Vectors, such as norms' weights, are always f32.
void add_storage(const EngineConfig& config, std::vector<scaling::PlanRow>& plan) {
  const optim::OptimizerConfig& c = *config.optimizer;
  const optim::StateStorage is = c.storage(), of_level = optim::storage_of(c.level);
  const optim::OptimizerEntry& entry = optim::optimizer_named(c.name);
  for (const optim::StateKey& k : optim::state_keys()) {
    const Storage storage = is.*k.storage, leveled = of_level.*k.storage;
    const std::string by =
        storage == leveled ? format("level {}", c.level) : format("changed by {}, level {} has {}", k.key, c.level, leveled);
    const std::string_view rounding = !k.variable                                        ? rounding_of(storage)
                                      : ops::rounds_stochastically(storage, *k.variable) ? ", rounded stochastically"
                                                                                         : "";
    const bool of_tables = k.variable == ops::AdamWVariable::v && !entry.second_moments;
    plan.push_back({k.name, 0, 0, to_text(storage),
                    format("{}; {}{}{}", by, optim::description(storage), rounding,
                           of_tables ? format("; {} has none, so those of embedding and head alone", entry.name) : "")});
  }
  const std::int64_t bytes = optim::bytes_per_parameter(is) - (entry.second_moments ? 0 : std::int64_t(size_of(code_type(is.v))));
  plan.push_back({config.adapters ? "matrices of adapters" : "matrices of blocks", 0, 0, format("{} bytes per parameter", bytes),
                  "weights, gradients and moments, without scales and 8-bit operands"});
}

void add_adapters(const Engine& engine, const EngineConfig& c, std::vector<scaling::PlanRow>& plan) {
  plan.push_back({"adapters", 0, 0, format("rank {}", c.adapters.rank),
                  format("{} parameters train; times alpha / rank = {}", grouped(engine.stage_parameters.count()), c.adapters.factor())});
  plan.push_back({"weights of the model", 0, 0, "frozen",
                  format("lora.rank = {}: {} parameters have no gradients and moments; those that only GEMMs read are operands",
                         c.adapters.rank, grouped(engine.stage_frozen.count() - c.shape.padding()))});
}

void add_further_tokens(const EngineConfig& c, std::vector<scaling::PlanRow>& plan) {
  const models::ModelShape& s = c.shape;
  if (s.mtp_depth == 0) return;
  const std::string last = s.mtp_depth > 1 ? format(" to layers.{}", s.all_layers() - 1) : "";
  plan.push_back(
      {"further tokens", 0, 0, format("depth {}", s.mtp_depth),
       format("model.mtp_depth: layers.{}{} predict them in training alone, with embedding and head of the model; their mean loss "
              "counts {}",
              s.layers, last, c.model.mtp_loss)});
}

std::string about_loss_scale(const optim::LossScaleConfig& c, optim::LossScaleConfig::Mode mode) {
  using Mode = optim::LossScaleConfig::Mode;
  if (mode == Mode::off) return "loss_scale.mode = \"off\": gradients of activations below 2^-25 become 0";
  if (mode == Mode::fixed) return format("{}, a factor of all gradients until they are clipped", optim::scale_text(c.start));
  return format("from {} on: times {} after a skipped step, times {} after {} good ones", optim::scale_text(c.start), c.backoff, c.growth,
                c.growth_steps);
}

void add_loss_scale(const optim::LossScaleConfig& c, DType activations, std::vector<scaling::PlanRow>& plan) {
  using Mode = optim::LossScaleConfig::Mode;
  const Mode mode = c.mode_for(activations);
  if (mode == Mode::off && activations != DType::f16) return;
  plan.push_back({"loss scale", 0, 0, to_text(mode), about_loss_scale(c, mode)});
}

// The parts of the state that ranks divide, and how weights travel.
void add_division(Engine& engine, const EngineConfig& c, std::vector<scaling::PlanRow>& plan) {
  for (scaling::PlanRow& row : plan_of_stages(engine, c)) plan.push_back(std::move(row));
  if (c.planned_ranks == 1) return;
  constexpr std::string_view divided[] = {"nothing: every rank has the whole state", "moments and master weights",
                                          "moments, master weights and sums of gradients",
                                          "moments, master weights, sums of gradients, and weights of blocks"};
  plan.push_back({format("divided among {} ranks", c.ranks.of_shards(c.planned_ranks)), 0, 0, format("ZeRO-{}", c.ranks.zero),
                  std::string(divided[std::size_t(c.ranks.zero)])});
  for (scaling::PlanRow& row : plan_of_sent_weights(engine, c)) plan.push_back(std::move(row));
  if (c.ranks.zero == 3 && c.precision.weights == scaling::WeightCodes::cached && engine.precision.slots().size() > 0)
    plan.push_back({"weight codes", 0, 0, "on demand", "ZeRO-3: cached codes, as recipe.weights says, would be those of all weights"});
}

void add_emulation(const Work& step, std::vector<scaling::PlanRow>& plan) {
  if (step.emulated_flops == 0) return;
  plan.push_back({"8-bit GEMMs", 0, 0, "decoded",
                  format("emulation: this GPU does not multiply such codes as they are, which concerns {}% of the GEMMs' work",
                         fixed(100 * step.emulated_flops / step.gemm_flops, 0))});
}

std::vector<std::string> smaller_states(const EngineConfig& c) {
  std::vector<std::string> out;
  if (!c.optimizer) return out;
  if (optim::bytes_per_parameter(c.optimizer->storage()) > optim::bytes_per_parameter(optim::storage_of(optim::Level::O3)))
    out.push_back("optim.level = \"O3\"");
  if (c.precision.weights == scaling::WeightCodes::cached) out.push_back("recipe.weights = \"on_demand\"");
  if (!c.optimizer->offload) out.push_back("optim.offload = true on a GPU");
  return out;
}

}  // namespace

comm::DryRunCommunicator communicator_of(const EngineConfig& c, const DryRunRank& rank) {
  const int of_stage = c.planned_ranks * int(c.ranks.tensor);
  return comm::DryRunCommunicator(of_stage * int(c.ranks.pipeline), of_stage * rank.stage, rank.workspace);
}

DryRun dry_run(const EngineConfig& config, Target target, std::int64_t batch, std::int64_t accumulate, const DryRunRank& rank) {
  comm::DryRunCommunicator ranks = communicator_of(config, rank);
  Engine engine(config, Device::null, target, &ranks);
  data::Batch shape;
  shape.rows = batch, shape.length = config.sequence, shape.document_mask = config.document_mask;
  shape.pairs.per_row = config.preference ? data::PairRows::most_pairs(config.sequence) : 0;
  DryRun out;
  engine.initialize(0);
  StepRunner runner(engine);
  if (engine.optimizer) {
    const StepCost cost = cost_of_step(engine, runner, shape, accumulate);
    out.step = cost.work, out.sent = cost.sent;
    const std::int64_t together = engine.pipeline.one_by_one() ? 1 : accumulate;
    runner.run(std::vector(std::size_t(together), shape), {.measure = true});  // for its memory: most steps do not measure
  }
  out.saved = engine.model->saved_bytes();
  evaluate_batch(engine, shape);
  if (config.preference) PairReferences::reserve(engine, shape);
  if (config.sampled > 0) Decoder::reserve(engine, {.longest = config.sampled});
  out.memory = engine.stream.arena().peak();
  out.parameters = engine.stage_parameters.count() + engine.stage_frozen.count() - config.shape.padding();
  out.plan = engine.precision.rows();
  if (config.optimizer) add_storage(config, out.plan);
  if (config.adapters) add_adapters(engine, config, out.plan);
  if (config.optimizer) add_further_tokens(config, out.plan);
  if (config.optimizer) add_loss_scale(config.loss_scale, engine.precision.activations(), out.plan);
  for (scaling::PlanRow& row : plan_of_sent_activations(engine, config)) out.plan.push_back(std::move(row));
  if (config.optimizer) add_division(engine, config, out.plan);
  add_emulation(out.step, out.plan);
  out.quantizers = engine.precision.slots().slots();
  out.shared_scales = engine.shared_scales.tensors();
  out.smaller_states = smaller_states(config);
  return out;
}

namespace {

// Bytes that do not depend on the batch.
std::size_t states(const MemoryPeak& memory) {
  std::size_t out = 0;
  for (const Category c : {Category::weights, Category::weight_operands, Category::gradients, Category::optimizer})
    out += memory.by_category[std::size_t(c)];
  return out;
}

// Advice that helps: a smaller batch only where something else than states needs the memory.
std::string remedies(const DryRun& dry, std::size_t available, const LoopConfig& loop) {
  const std::size_t total = dry.memory.total, fixed = states(dry.memory), of_batch = total - std::min(total, fixed);
  if (fixed > available) {
    const std::string settings = joined(dry.smaller_states);
    return format(
        "weights, gradients and optimizer states alone need {}, at any batch size: {}use a smaller model; see "
        "docs/recipes.md#memory",
        bytes_text(double(fixed)), settings.empty() ? "" : "set " + settings + ", or ");
  }
  const std::string more =
      "use a shorter data.sequence_length, a smaller model, or see docs/recipes.md#memory on model.recompute, recipe.weights and optim";
  if (loop.batch <= 1) return more;
  const auto fits = [&](std::int64_t batch) {
    return double(fixed) + double(of_batch) * double(batch) / double(loop.batch) <= double(available);
  };
  std::int64_t batch = loop.batch - 1;  // the largest divisor that fits: the step keeps its tokens
  while (batch > 1 && (loop.batch % batch != 0 || !fits(batch))) --batch;
  return format("set train.batch = {} and train.accumulate = {}, or ", batch, loop.accumulate * (loop.batch / batch)) + more;
}

}  // namespace

void require_memory(const DryRun& dry, std::size_t available, const LoopConfig& loop) {
  if (dry.memory.host > 0 && dry.memory.host > cpu::available_bytes())
    throw DeviceError(
        format("optim.offload needs {} of the host's memory and {} are free: set optim.level = \"O2\", or optim.offload = false",
               bytes_text(double(dry.memory.host)), bytes_text(double(cpu::available_bytes()))));
  if (dry.memory.total <= available) return;
  std::string largest;
  for (std::size_t c = 0; c < categories; ++c)
    if (dry.memory.by_category[c] * 5 > dry.memory.total)
      largest += format("{}{} {}", largest.empty() ? "" : ", ", name(Category(c)), bytes_text(double(dry.memory.by_category[c])));
  throw DeviceError(format("the run needs {} of memory ({}) and {} are free: {}", bytes_text(double(dry.memory.total)), largest,
                           bytes_text(double(available)), remedies(dry, available, loop)));
}

void require_native(const DryRun& dry, const scaling::PrecisionConfig& config) {
  if (dry.step.emulated_flops == 0 || config.emulation) return;
  throw DeviceError(
      format("recipe.name = \"{}\"{}: this GPU does not multiply such codes as they are; choose another recipe, or set recipe.emulation = "
             "true to have "
             "them decoded first and multiplied at the rate of BF16",
             config.recipe, config.rules.empty() ? "" : " with recipe.rules"));
}

void require_eight_bits(const DryRun& dry, const scaling::PrecisionConfig& config) {
  const auto unfit = std::ranges::find_if(dry.plan, &scaling::PlanRow::unfit);
  if (unfit == dry.plan.end() || std::ranges::any_of(dry.plan, &scaling::PlanRow::eight_bits)) return;
  const auto layers = std::ranges::count_if(dry.plan, [](const scaling::PlanRow& row) { return row.out != 0; });
  throw ConfigError(
      format("recipe.name = \"{}\"{}: none of the model's {} linear layers would run in 8 bits ({}: {}); choose a model of such multiples, "
             "set recipe.name = \"bf16\", or set recipe.keep_bf16 = [\"*\"] to train in BF16 under this name",
             config.recipe, config.rules.empty() ? "" : " with recipe.rules", layers, unfit->path, unfit->why));
}

}  // namespace octet::train
