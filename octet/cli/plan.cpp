#include <algorithm>
#include <cmath>
#include <tuple>

#include "octet/base/log.hpp"
#include "octet/base/output.hpp"
#include "octet/base/path.hpp"
#include "octet/cli/layout_plan.hpp"
#include "octet/cli/run_options.hpp"
#include "octet/data/glob.hpp"
#include "octet/data/text_files.hpp"
#include "octet/launch/way.hpp"
#include "octet/train/run/trainer.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/run/config/final_part.hpp"
#include "octet/train/run/config/token_folders.hpp"
#include "octet/machine/machine.hpp"
#include "octet/machine/ranks.hpp"
#include "octet/train/run/folder/run_folder.hpp"

namespace octet::cli {
namespace {

// The name to the left of 18 columns, the bytes to the right of 12.
std::string memory_row(std::string name, std::size_t bytes) {
  name.resize(std::max<std::size_t>(18, name.size()), ' ');
  const std::string size = bytes_text(double(bytes));
  return name + " " + std::string(size.size() < 12 ? 12 - size.size() : 0, ' ') + size;
}

// Saved activations of one block; the least and the most if blocks differ.
std::string saved_row(const std::vector<std::size_t>& blocks, std::int64_t tokens) {
  const auto [least, most] = std::minmax_element(blocks.begin(), blocks.end());
  const auto per_token = [&](std::size_t bytes) { return grouped(std::int64_t(bytes) / tokens); };
  const std::string from = *least == *most ? "" : per_token(*least) + " to ";
  return format("saved    {} of activations per block and micro-batch\n         {}{} bytes per token\n", bytes_text(double(*most)), from,
                per_token(*most));
}

// Ranks that need not be there: how gradients travel, and the bytes that each rank sends in a step.
void print_ranks(const train::RunConfig& c, const telemetry::RanksFacts& ranks) {
  if (ranks.started == 1) return;
  const bool wide_ends = c.comm.gradients == parallel::Wire::stored && c.optim.storage().gradients != Storage::f32;
  const std::tuple<std::int64_t, const char*, const char*> axes[] = {{c.ranks.tensor, "", " of which divide each layer"},
                                                                     {c.ranks.context, "", " of which divide each sequence"},
                                                                     {c.ranks.expert, "in groups of ", " that divide the experts"},
                                                                     {c.ranks.pipeline, "in ", " stages of blocks"}};
  std::string divided;
  for (const auto& [size, before, after] : axes)
    if (size > 1) divided += format(", {}{}{}", before, size, after);
  output::print("ranks    {}{}, each {}on its own sequences; gradients of matrices travel as {}, of {}vectors as f32\n",
                grouped(ranks.started), divided, c.ranks.of_sequence() > 1 ? "group " : "", ranks.gradients,
                wide_ends ? "embedding, head and " : "");
  output::print("sent     {} per rank and step, in {} collectives\n", bytes_text(double(ranks.planned.sent_bytes)),
                ranks.planned.collectives);
  std::int64_t all = 0;
  for (const auto& s : ranks.sent) all += s.bytes;
  if (c.ranks.expert > 1)
    output::print("experts  {} more to the experts of {} ranks, if tokens choose by chance; those of a run depend on its choices\n",
                  bytes_text(double(all - ranks.planned.sent_bytes)), c.ranks.expert);
  for (const auto& s : ranks.sent) output::print("         {}  {} calls\n", memory_row(s.collective, std::size_t(s.bytes)), s.calls);
}

// Validates the data as train would, if it is on this machine.
void require_data(const train::RunConfig& c) {
  if (c.data.path.empty()) return;
  const bool here = data::names_text(c.data.path) ? !data::files_matching(c.data.path).empty() : exists(c.data.path);
  if (!here) return log::warn("data.path: there is no '{}' here, so the data was not validated", printable(c.data.path));
  std::optional<data::DataConfig> tokens = train::with_found_token_folders(c);
  if (!tokens) return log::info("the text becomes tokens when the training begins, so the data was not validated");
  tokens->verify = false;
  const train::Corpus corpus(*tokens, c.train, c.model.shape().vocabulary);
  train::require_kind(corpus, c);
}

// Backends that the run's ranks may have here: that of ranks that were started; else those of octet launch and octet train, the one that
// needs more memory first.
std::vector<std::string> backends_here(const train::RunConfig& c, Device device) {
  const std::string started = machine::started_backend(c.device);
  if (!started.empty()) return {started};
  if (device != Device::cpu) return {"nccl"};
  const launch::Choice launched = launch::choose(int(c.ranks.all()), launch::Devices::cpu, launch::this_machine());
  return launched.way == launch::Way::mpi ? std::vector<std::string>{"mpi", "threads"} : std::vector<std::string>{"threads"};
}

// Of a run whose ranks have this backend, one for each stage of a pipeline.
struct Planned {
  std::string backend;
  std::vector<train::DryRun> stages;

  const train::DryRun& largest() const {
    return *std::ranges::max_element(stages, {}, [](const train::DryRun& d) { return d.memory.total; });
  }
};

Planned planned(const train::RunConfig& c, const train::EngineConfig& engine, const Target& target, const std::string& backend) {
  Planned out{.backend = backend, .stages = {}};
  for (int stage = 0; stage < int(c.ranks.pipeline); ++stage)
    out.stages.push_back(train::dry_run(engine, target, c.train.batch, c.train.accumulate, {stage, comm::workspace_of(backend)}));
  return out;
}

// The memory of a rank, by the way in which ranks may run here: "9 MiB per rank at the peak over MPI, 8 MiB in threads of one process".
std::string memory_text(const std::vector<Planned>& ways, bool several) {
  std::vector<std::string> out;
  for (const Planned& p : ways) {
    const std::string per_rank = !out.empty() ? "" : several ? " per rank at the peak" : " at the peak";
    const std::string way = p.backend == "mpi" ? " over MPI" : p.backend == "threads" ? " in threads of one process" : "";
    out.push_back(bytes_text(double(p.largest().memory.total)) + per_rank + way);
  }
  return joined(out);
}

void print_stages(const std::vector<train::DryRun>& stages) {
  std::vector<std::string> memory, work;
  for (const train::DryRun& s : stages)
    memory.push_back(bytes_text(double(s.memory.total))), work.push_back(fixed(s.step.gemm_flops / 1e9, 1));
  output::print("         by stage {}; work and memory here are those of the largest\n", joined(memory));
  output::print("         GFLOP in GEMMs by stage {}\n", joined(work));
}

// The memory of a run of these keys less that of the run with `change`.
template <class Change>
double saved_bytes(const train::RunConfig& c, const Target& target, const Planned& own, const Change& change) {
  train::EngineConfig other = train::engine_config(c);
  change(other.precision);
  return double(own.largest().memory.total) - double(planned(c, other, target, own.backend).largest().memory.total);
}

// How the memory of 8-bit recipes compares with that of BF16, and the keys that reduce it.
void print_remedies(const train::RunConfig& c, const Target& target, const Planned& own) {
  using scaling::PrecisionConfig, scaling::SavedActivations, scaling::WeightCodes;
  if (!scaling::names_eight_bits(c.recipe)) return;
  const double more = saved_bytes(c, target, own, [](PrecisionConfig& p) {
    p.final_recipe = "bf16";
    p = scaling::final_part(p);
  });
  const double codes = saved_bytes(c, target, own, [](PrecisionConfig& p) { p.weights = WeightCodes::on_demand; });
  const double activations = saved_bytes(c, target, own, [](PrecisionConfig& p) { p.activations = SavedActivations::fp8; });
  if (more != 0) output::print("         {} {} than under bf16\n", bytes_text(std::abs(more)), more > 0 ? "more" : "less");
  if (codes > 0) output::print("         {} less with recipe.weights = \"on_demand\", without stored codes\n", bytes_text(codes));
  if (activations > 0) output::print("         {} less with recipe.activations = \"fp8\"\n", bytes_text(activations));
}

// The memory of the last steps, in the precision of recipe.final.
void require_final_part(const train::RunConfig& c, const Target& target, const std::string& backend) {
  const train::EngineConfig engine = train::engine_config(c, c.recipe.final_recipe);
  const Planned last = planned(c, engine, target, backend);
  output::print("final    {} steps from step {} on in {}, {} {}at the peak\n", grouped(c.steps() - train::steps_before_final_part(c)),
                grouped(train::steps_before_final_part(c) + 1), c.recipe.final_recipe, bytes_text(double(last.largest().memory.total)),
                c.ranks.all() > 1 ? "per rank " : "");
  train::require_native(last.largest(), engine.precision);
  train::require_memory(last.largest(), machine::available_bytes(machine::device_named(c.device)), c.train);
}

ExitCode plan_run(const RunOptions& o) {
  const train::RunConfig c = o.config();
  train::require_recovery(c);
  const Device device = machine::device_named(c.device);
  const train::EngineConfig engine = train::engine_config(c);
  require_data(c);
  const Target target = machine::machine_target(device, c.deterministic);
  const bool several = c.ranks.all() > 1;
  std::vector<Planned> ways;
  for (const std::string& backend : several ? backends_here(c, device) : std::vector<std::string>{""})
    ways.push_back(planned(c, engine, target, backend));
  const std::vector<train::DryRun>& stages = ways.front().stages;
  const train::DryRun& dry = ways.front().largest();
  output::print("model    {}, {} parameters\n", c.model.name(), grouped(dry.parameters));
  const std::int64_t count = c.ranks.sequence_groups();
  output::print("step     {} tokens = {}{} x {} sequences of {}\n", grouped(c.tokens_per_step()),
                count > 1 ? format("{} {} x ", count, c.ranks.of_sequence() > 1 ? "groups of ranks" : "ranks") : "", c.train.accumulate,
                c.train.batch, c.data.sequence_length);
  print_ranks(c, train::ranks_facts_of(c, dry));
  output::print(
      "work     {} GFLOP {} step\n         {} in GEMMs, {}% of these with 8-bit operands\n         {} of other memory traffic, {} ops\n",
      fixed(dry.step.flops / 1e9, 1), several ? "per rank and" : "per", fixed(dry.step.gemm_flops / 1e9, 1),
      fixed(100 * dry.step.fp8_flops / std::max(dry.step.gemm_flops, 1.0), 1), bytes_text(dry.step.bytes), dry.step.ops);
  output::print("memory   {}, {} free here\n", memory_text(ways, several), bytes_text(double(machine::available_bytes(device))));
  if (stages.size() > 1) print_stages(stages);
  for (std::size_t i = 0; i < categories; ++i)
    if (dry.memory.by_category[i] != 0)
      output::print("         {}\n", memory_row(std::string(name(Category(i))), dry.memory.by_category[i]));
  print_remedies(c, target, ways.front());
  if (!dry.saved.empty()) output::print("{}", saved_row(dry.saved, c.train.batch * c.data.sequence_length));
  if (dry.memory.host != 0) output::print("         and {} of the host's memory (optim.offload)\n", bytes_text(double(dry.memory.host)));
  output::print("layers\n{}", train::plan_text(dry.plan));
  train::require_native(dry, c.recipe);
  train::require_eight_bits(dry, c.recipe);
  train::require_memory(dry, machine::available_bytes(device), c.train);
  if (scaling::has_final_part(c.recipe)) require_final_part(c, target, ways.front().backend);
  return ExitCode::done;
}

}  // namespace

void add_plan(Program& program) {
  auto o = std::make_shared<RunOptions>();
  auto layout = std::make_shared<LayoutOptions>();
  Command command = program.command(
      "plan", "Estimate memory, work and speed, or choose a layout on many GPUs, without training",
      "  octet plan --set model.size=llama-3-8b --fp8 block128 --set train.batch=1\n"
      "  octet plan run.toml\n"
      "  octet plan run.toml --gpus 64 --per-node 8 --write job\n"
      "  octet plan --schedule 1f1b.svg --stages 4 --micro-batches 8\n"
      "Exit code 69: the run would not fit into this machine's memory, or its GPU does not multiply the recipe's codes; with\n"
      "--gpus: no layout fits. See docs/parallelism-guide.md.");
  o->add_to(command);
  layout->add_to(command);
  command.run([o, layout, command] {
    layout->require_together(command.given());
    if (!layout->asked()) return plan_run(*o);
    std::vector<std::string> given = command.given();
    for (const std::string& key : o->keys()) given.push_back(key);
    return layout->run(o->config(), given);
  });
}

}  // namespace octet::cli
