#include "octet/cli/layout_plan.hpp"

#include <algorithm>
#include <cmath>

#include "octet/base/file.hpp"
#include "octet/base/output.hpp"
#include "octet/base/wrapped.hpp"
#include "octet/cli/run_options.hpp"
#include "octet/plan/dry_memory.hpp"
#include "octet/plan/given_layout.hpp"
#include "octet/plan/job_files.hpp"
#include "octet/plan/matrix.hpp"
#include "octet/plan/model_file.hpp"
#include "octet/plan/schedule_picture.hpp"
#include "octet/plan/table.hpp"
#include "octet/scaling/recipe.hpp"
#include "octet/train/run/checkpoints/resume.hpp"

namespace octet::cli {
namespace {

// "80GB" or "80GiB".
double bytes_of_gpu(const std::string& text) {
  const std::size_t digits = text.find_first_not_of("0123456789.");
  const auto number = parse_number(text.substr(0, digits));
  const std::string unit = digits == std::string::npos ? "" : text.substr(digits);
  const double factor = unit == "GB" ? 1e9 : unit == "GiB" ? 1024.0 * 1024 * 1024 : 0;
  if (!number || factor == 0 || !(*number > 0) || *number > 1e6)
    throw ConfigError(format("--memory {}: wants the memory of one GPU, such as 80GB or 74.5GiB", printable(text)));
  return *number * factor;
}

std::vector<optim::Level> levels_of(const std::vector<std::string>& words, optim::Level own) {
  std::vector<optim::Level> out;
  for (const std::string& word : words) {
    bool found = false;
    for (int i = 0; i < optim::levels; ++i)
      if (optim::to_text(optim::Level(i)) == word) out.push_back(optim::Level(i)), found = true;
    if (!found) throw ConfigError(format("--levels {}: wants O0, O1, O2 or O3", printable(word)));
  }
  return out.empty() ? std::vector{own} : out;
}

plan::Job job_of(const LayoutOptions& o, const train::RunConfig& c) {
  plan::Job job{.sequence = c.data.sequence_length,
                .sequences = train::sequences_per_step(c),
                .gpus = o.gpus,
                .machine = machine::machine_constants(o.machine)};
  if (o.per_node > 0) job.machine.devices_per_node = o.per_node;
  o.network.apply(job.machine);
  job.expert_load = o.expert_load;
  job.memory = o.memory.empty() ? job.machine.memory_gb * 1e9 : bytes_of_gpu(o.memory);
  return job;
}

bool is_eight_bit(const scaling::PrecisionConfig& c) { return is_fp8(scaling::make_recipe(c.recipe, c.options)->formats().forward); }

// How the recipe encodes the activations of a block; of a run in 16 bits, the default one.
ops::QuantizeSpec encoding_of(const scaling::PrecisionConfig& c) {
  const scaling::PrecisionConfig plain{.recipe = is_eight_bit(c) ? c.recipe : default_fp8_recipe, .options = c.options};
  scaling::Precision precision(plain);
  const scaling::LinearPlan layer = precision.plan({.path = "layers.1.mlp.down", .out = 4096, .in = 4096, .layer = 1, .layers = 3});
  Stream stream(Device::null);
  precision.allocate(stream);
  return layer.x->spec({});
}

// Octet with the run's storage of states at the layout's level, its recipe's encoding, and its format of gradients on the wire.
plan::ProgramOf program_of(const train::RunConfig& c) {
  return [wire = c.comm.gradients, optimizer = c.optim, encoding = encoding_of(c.recipe)](const plan::Layout& l) mutable {
    optimizer.level = l.level;
    const optim::StateStorage storage = optimizer.storage();
    plan::Software s = plan::octet_software(storage, l.zero, l.eight_bit);
    if (l.eight_bit) plan::add_encoding(s, encoding);
    const parallel::Wire sent = parallel::wire_of(wire, storage.gradients);
    s.sent_gradient = sent == parallel::Wire::f32 ? 4 : sent == parallel::Wire::bf16 ? 2 : 1;
    return s;
  };
}

// One GPU's step of the run, with its recipe.
train::DryRun dry_run_of(const train::RunConfig& c, const scaling::PrecisionConfig& recipe, const Target& target) {
  train::EngineConfig engine = train::engine_config(c);
  engine.ranks = {}, engine.planned_ranks = 1, engine.precision = recipe;
  return train::dry_run(engine, target, c.train.batch, 1);
}

// The recipe on the machine as training has it: refused, or emulated at the rate of BF16.
void require_precision(const LayoutOptions& o, const train::RunConfig& c, plan::Question& q) {
  const Target target = machine::target_of(q.job.machine);
  if (!q.eight_bit) {
    q.has_other_precision = dry_run_of(c, {.recipe = default_fp8_recipe}, target).step.emulated_flops == 0;
    return;
  }
  scaling::PrecisionConfig recipe = c.recipe;
  if (!o.model.empty())
    recipe = {.recipe = c.recipe.recipe, .options = c.recipe.options, .emulation = c.recipe.emulation};  // no layer's names
  train::RunConfig small = c;  // in place of a model that has no size here
  if (!o.model.empty()) small.model = {}, small.data.sequence_length = 128, small.train.batch = 1;
  const train::DryRun dry = dry_run_of(small, recipe, target);
  try {
    train::require_native(dry, recipe);
    if (o.model.empty()) train::require_eight_bits(dry, recipe);
  } catch (const Error& e) {
    throw Error(e.code(), format("--machine {}: {}", printable(o.machine), e.what()));
  }
  const double emulated = dry.step.emulated_flops / std::max(dry.step.fp8_flops, 1.0);
  double& gain = q.job.machine.eight_bit_gain;
  gain = 1 / ((1 - emulated) / gain + emulated);
}

// Of the run, for the rules of layouts. The precision that it does not ask for is the default.
train::Subject options_of(const train::RunConfig& c) {
  train::Subject s{.codes_attention = scaling::codes_attention(c.recipe), .optimizer = c.optim, .comm = c.comm};
  (is_eight_bit(c.recipe) ? s.eight_bit_recipe : s.recipe) = c.recipe.recipe;
  if (!is_eight_bit(c.recipe)) s.eight_bit_recipe = default_fp8_recipe;
  return s;
}

// Bytes of a model that has no size here, by formula.
std::unique_ptr<plan::MemorySource> memory_of_large(const LayoutOptions& o, plan::Question& q) {
  q.model = plan::model_named(o.model);
  return std::make_unique<plan::FormulaMemory>(q.model, q.job, q.program);
}

// Those of the run's model, by dry runs for the machine.
std::unique_ptr<plan::MemorySource> memory_of_run(const train::RunConfig& c, plan::Question& q) {
  const train::EngineConfig engine = train::engine_config(c);
  q.model = plan::planned_model(engine.shape);
  scaling::PrecisionConfig fp8 = c.recipe, plain = c.recipe;
  if (q.eight_bit) plain = {.recipe = "bf16"};
  else fp8.recipe = default_fp8_recipe;
  return std::make_unique<plan::DryMemory>(engine, fp8, plain, machine::target_of(q.job.machine), q.job);
}

// The assumptions about options and keys that the user has not set, with their names.
std::string assumed(const train::RunConfig& c, const plan::Question& q, const std::vector<std::string>& given) {
  const auto has = [&](std::string_view name) { return std::find(given.begin(), given.end(), name) != given.end(); };
  std::vector<std::string> out;
  if (!has("train.batch") && !has("train.accumulate") && !has("ranks.data"))
    out.push_back(format("{} sequences per step (train.batch = {} x train.accumulate = {})", grouped(q.job.sequences), c.train.batch,
                         c.train.accumulate));
  if (!has("data.sequence_length")) out.push_back(format("sequences of {} tokens (data.sequence_length)", grouped(q.job.sequence)));
  if (!has("recipe.name")) out.push_back(format("recipe {} (recipe.name or --fp8)", c.recipe.recipe));
  if (!has("optim.level") && !has("--levels")) out.push_back(format("level {} (--levels)", optim::to_text(q.levels.front())));
  if (!has("--machine")) out.push_back(format("rates of {} (--machine)", q.job.machine.name));
  if (!has("--memory")) out.push_back(format("{} GB per GPU (--memory)", fixed(q.job.memory / 1e9, 1)));
  if (!has("--per-node")) out.push_back(format("{} GPUs per node (--per-node)", q.job.per_node()));
  if (q.job.gpus > q.job.per_node())
    for (const std::string& words : assumed_network(q.job.machine, given)) out.push_back(words);
  if (!has("--expert-load") && q.model.experts.count > 0) out.push_back("experts chosen equally often (--expert-load)");
  std::string text;
  for (const std::string& sentence : out) text += (text.empty() ? "assumed  " : "         ") + sentence + "\n";
  return text;
}

std::string title(const LayoutOptions& o, const train::RunConfig& c, const plan::Question& q) {
  return format("job      {} GPUs of {}, {} per node, {}, {} sequences of {} tokens per step\n", grouped(q.job.gpus),
                printable(q.job.machine.name), q.job.per_node(), network_text(q.job.machine), grouped(q.job.sequences),
                grouped(q.job.sequence)) +
         format("model    {}, {} parameters in matrices\n", o.model.empty() ? c.model.name() : o.model,
                grouped(std::llround(q.model.parameters())));
}

// Days and failures of a run whose length is known in tokens, by this layout.
std::string training(const LayoutOptions& o, std::int64_t tokens, const plan::Candidate& c, const plan::Job& job) {
  if (tokens == 0) return "";
  return plan::training_text(double(tokens), plan::training_of(double(tokens), c.time, job, o.failures), job, o.failures, o.price);
}

// The layout that was asked for, or the best ones.
ExitCode answer(const LayoutOptions& o, const train::RunConfig& c, const plan::Question& q, plan::MemorySource& memory,
                const std::vector<std::string>& given_names) {
  const std::string head = title(o, c, q) + assumed(c, q, given_names);
  if (!o.layout.empty()) {
    const plan::Candidate given = plan::assess(plan::layout_in_words(o.layout, q), q, memory);
    output::write(wrapped_lines(head + plan::given_text(q, given) + training(o, c.train.tokens, given, q.job)));
    return ExitCode::done;
  }
  const plan::Answer found = plan::search(q, memory);
  if (!o.write.empty() && !found.best.empty())
    plan::write_job(o.write, c, found.best.front().layout, q.job, machine::target_of(q.job.machine));
  output::write(wrapped_lines(head + plan::answer_text(q, found)));
  if (!found.best.empty()) output::write(wrapped_lines(training(o, c.train.tokens, found.best.front(), q.job)));
  if (const std::string why = plan::nothing_fits(q, found); !why.empty()) throw DeviceError(why);
  if (!o.write.empty()) output::print("written  {}/plan.toml and {}/plan.sbatch\n", printable(o.write), printable(o.write));
  return ExitCode::done;
}

ExitCode plan_layout(const LayoutOptions& o, const train::RunConfig& c, const std::vector<std::string>& given) {
  const plan::Job job = job_of(o, c);
  plan::Question q{.job = job,
                   .eight_bit = is_eight_bit(c.recipe),
                   .levels = levels_of(o.levels, c.optim.level),
                   .only_runnable = o.runnable,
                   .run = options_of(c),
                   .program = program_of(c)};
  if (!o.write.empty() && !o.layout.empty())
    throw ConfigError("--write: it writes the best layout, and --layout asks for one of yours; leave one out");
  if (!o.write.empty() && !o.model.empty())
    throw ConfigError(format("--write: {} is no model.size of this version, so no run file is written", printable(o.model)));
  require_precision(o, c, q);
  const auto memory = o.model.empty() ? memory_of_run(c, q) : memory_of_large(o, q);
  return answer(o, c, q, *memory, given);
}

template <class Named>
std::vector<std::string> names_of(const std::vector<Named>& all) {
  std::vector<std::string> out;
  for (const Named& one : all) out.push_back(one.name);
  return out;
}

ExitCode draw(const LayoutOptions& o) {
  const parallel::Schedule schedule = parallel::schedule_named(o.schedule);
  write_file(o.schedule_file,
             plan::schedule_svg(schedule, parallel::pipeline_shape(schedule, o.stages, chunks_of(schedule, o.chunks), o.micro_batches)));
  return ExitCode::done;
}

}  // namespace

void LayoutOptions::add_to(Command& command) {
  command.option("--gpus", gpus, "plan the run on so many GPUs: the fastest layouts that fit, without a GPU",
                 {.at_least = 1, .at_most = 1 << 20});
  command.option("--per-node", per_node, "with --gpus: linked GPUs of a node; default: the machine's", {.at_least = 1, .at_most = 1024});
  command.option("--memory", memory, "with --gpus: memory of one GPU, such as 80GB; default: the machine's");
  command.option("--machine", machine,
                 format("with --gpus: {}, or a file of octet bench --calibrate", joined(names_of(machine::named_machines()))));
  network.add_to(command);
  command.option("--expert-load", expert_load,
                 "with --gpus and experts: rows of the most loaded rank's experts over the mean; 1: tokens choose evenly", {.at_least = 1});
  command.option("--levels", levels, "with --gpus: levels to choose from, such as O0,O2; default: the run's", ',');
  command.flag("--runnable", runnable, "with --gpus: only layouts that this version trains");
  command.option("--model", model,
                 format("with --gpus: another model than the run's: {}, or a file with its shape and experts",
                        joined(names_of(plan::large_models()))));
  command.option(
      "--layout", layout,
      "with --gpus: predict this one, such as tensor=4,pipeline=2,zero=1,batch=2; also context, data, experts, shard, schedule, chunks, "
      "recompute (norms, block), level");
  command.option("--write", write, "with --gpus: folder for the run file and the Slurm script of the best layout");
  command.option("--mtbf-hours", failures.mtbf_hours,
                 "with --gpus and train.tokens: between failures of one GPU with its share of host and network", {.at_least = 1e-3});
  command.option("--checkpoint-seconds", failures.checkpoint_seconds,
                 "with --gpus and train.tokens: that one checkpoint takes from training", {.at_least = 1e-3});
  command.option("--restart-minutes", failures.restart_minutes, "with --gpus and train.tokens: from a failure to the next step",
                 {.at_least = 0});
  command.option("--repair-hours", failures.repair_hours,
                 "with --gpus and train.tokens: until a failed node is back, for the number of spares", {.at_least = 0});
  command.option("--price", price, "with --gpus and train.tokens: of a GPU hour", {.at_least = 0});
  command.option("--schedule", schedule_file, "file of a picture of a pipeline schedule (SVG)");
  command.option("--kind", schedule, "with --schedule: " + parallel::schedule_names(),
                 {.one_of = {"gpipe", "1f1b", "interleaved", "zero_bubble", "dualpipe_v"}});
  command.option("--stages", stages, "with --schedule: stages", {.at_least = 1, .at_most = 64});
  command.option("--chunks", chunks, "with --schedule: chunks per stage, of interleaved", {.at_least = 1, .at_most = 64});
  command.option("--micro-batches", micro_batches, "with --schedule: micro-batches", {.at_least = 1, .at_most = 512});
  command.optional_value("--matrix", matrix, matrix_file, "write the guide to layouts, by default docs/parallelism-guide.md");
}

void LayoutOptions::require_together(const std::vector<std::string>& given) const {
  constexpr std::pair<const char*, const char*> belongs[] = {{"--per-node", "--gpus"},
                                                             {"--network", "--gpus"},
                                                             {"--rails", "--gpus"},
                                                             {"--nodes-per-leaf", "--gpus"},
                                                             {"--oversubscription", "--gpus"},
                                                             {"--expert-load", "--gpus"},
                                                             {"--memory", "--gpus"},
                                                             {"--machine", "--gpus"},
                                                             {"--levels", "--gpus"},
                                                             {"--runnable", "--gpus"},
                                                             {"--write", "--gpus"},
                                                             {"--model", "--gpus"},
                                                             {"--layout", "--gpus"},
                                                             {"--stages", "--schedule"},
                                                             {"--chunks", "--schedule"},
                                                             {"--micro-batches", "--schedule"},
                                                             {"--kind", "--schedule"},
                                                             {"--mtbf-hours", "--gpus"},
                                                             {"--checkpoint-seconds", "--gpus"},
                                                             {"--restart-minutes", "--gpus"},
                                                             {"--repair-hours", "--gpus"},
                                                             {"--price", "--gpus"}};
  const auto has = [&](const std::string& name) { return std::find(given.begin(), given.end(), name) != given.end(); };
  for (const auto& [option, with] : belongs)
    if (has(option) && !has(with))
      throw ConfigError(format("{} has an effect with {} only; add it, or leave {} out", option, with, option));
  if ((gpus > 0) + matrix + !schedule_file.empty() > 1)
    throw ConfigError("--gpus, --schedule and --matrix are different questions; ask one at a time");
}

ExitCode LayoutOptions::run(const train::RunConfig& c, const std::vector<std::string>& given) const {
  if (matrix) {
    write_file(matrix_file.empty() ? "docs/parallelism-guide.md" : matrix_file, plan::guide_text());
    return ExitCode::done;
  }
  return schedule_file.empty() ? plan_layout(*this, c, given) : draw(*this);
}

}  // namespace octet::cli
