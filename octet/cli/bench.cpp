#include <algorithm>
#include <charconv>

#include "octet/base/file.hpp"
#include "octet/base/log.hpp"
#include "octet/base/output.hpp"
#include "octet/bench/all_reduce.hpp"
#include "octet/bench/calibrate.hpp"
#include "octet/bench/scaling.hpp"
#include "octet/bench/tensor_attention.hpp"
#include "octet/bench/steps_on_ranks.hpp"
#include "octet/bench/network.hpp"
#include "octet/bench/table.hpp"
#include "octet/bench/topology.hpp"
#include "octet/cli/command.hpp"
#include "octet/cli/run_options.hpp"
#include "octet/cli/signals.hpp"
#include "octet/config/read.hpp"
#include "octet/config/write.hpp"
#include "octet/machine/machine.hpp"
#include "octet/machine/ranks.hpp"
#include "octet/train/run/ranks/stop.hpp"

namespace octet::cli {
namespace {

struct Options {
  std::string group = "all", device = "auto", model, json, svg, trace, calibrate;
  std::vector<std::string> recipes, set, bytes, quality_ranks;
  std::int64_t ranks = 0;
  std::int64_t tokens = 0, sequence = 0, accumulate = 0, repeat = 9, working_set_mib = 0;
  double sample_ms = 0, uneven = -1;
  bool quiet = false, topology = false;
};

constexpr std::string_view other_groups = "all, allreduce, tp-attention or scaling";

bool steps_on_ranks(const Options& o) { return o.group == "step" && (o.ranks > 1 || machine::started_ranks() > 1); }

// Defaults: the demo's model on a CPU, a model that loads a GPU on a GPU.
train::RunConfig config_of(const Options& o) {
  train::RunConfig c;
  c.device = o.device;
  const bool gpu = machine::device_named(o.device) != Device::cpu;
  c.model.size = !o.model.empty() ? o.model : gpu ? "qwen2.5-0.5b" : "llama-tiny";
  c.data.sequence_length = o.sequence > 0 ? o.sequence : gpu ? 4096 : 256;
  const std::int64_t tokens = o.tokens > 0 ? o.tokens : gpu ? 16384 : 1024;
  if (o.sequence == 0) c.data.sequence_length = std::min({c.data.sequence_length, tokens, c.model.shape().max_sequence});
  if (tokens % c.data.sequence_length != 0)
    throw ConfigError(
        format("--tokens {} must be a multiple of the sequence's {} tokens; set --sequence too", tokens, c.data.sequence_length));
  c.train.batch = tokens / c.data.sequence_length, c.train.accumulate = std::max<std::int64_t>(o.accumulate, 1);
  config::Origins origins;
  for (const auto& assignment : o.set) config::apply_override(c, assignment, origins);
  return c;
}

bench::ExpertLoads loads_of(const Options& o) { return o.uneven < 0 ? bench::ExpertLoads() : bench::ExpertLoads::of_spread(o.uneven); }

bench::BenchOptions plan_of(const Options& o) {
  bench::BenchOptions plan{.config = config_of(o), .recipes = o.recipes};
  plan.groups.assign(std::begin(bench::groups), std::end(bench::groups));
  if (o.group != "all") {
    if (std::find(plan.groups.begin(), plan.groups.end(), o.group) == plan.groups.end())
      throw ConfigError(format("\"{}\" cannot be measured; choose one of {}, {}", printable(o.group), joined(bench::groups), other_groups));
    plan.groups = {o.group};
  }
  const bool gpu = machine::device_named(plan.config.device) != Device::cpu;
  plan.loads = loads_of(o);
  plan.effort = {.repeats = int(o.repeat),
                 .sample_seconds = o.sample_ms > 0 ? o.sample_ms / 1e3
                                   : gpu           ? 0.02
                                                   : 0.005,
                 .working_set_bytes = double(o.working_set_mib) * 1024 * 1024};
  return plan;
}

// "64", "64K", "64M" or "64G", in powers of 1024.
std::int64_t bytes_of(const std::string& text) {
  std::int64_t n = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, n);
  const std::string_view unit(at, std::size_t(end - at));
  const int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
  if (error != std::errc() || shift < 0 || n < 1 || n > std::int64_t(1) << 36)
    throw ConfigError(format("--bytes {}: wants sizes such as 4096, 64K or 16M", printable(text)));
  return n << shift;
}

int ranks_of(const std::string& text) {
  int n = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || at != text.data() + text.size() || n < 1 || n > 1024)
    throw ConfigError(format("--quality-ranks {}: wants numbers from 1 to 1024", printable(text)));
  return n;
}

bench::AllReduceOptions all_reduce_plan(const Options& o) {
  bench::AllReduceOptions plan{.bytes = {}, .device = o.device, .ranks = int(o.ranks), .quality_ranks = {}, .effort = {}};
  for (const std::string& b : o.bytes) plan.bytes.push_back(bytes_of(b));
  for (const std::string& n : o.quality_ranks) plan.quality_ranks.push_back(ranks_of(n));
  plan.effort.repeats = int(o.repeat);
  if (o.sample_ms > 0) plan.effort.sample_seconds = o.sample_ms / 1e3;
  plan.peer_memory = config_of(o).comm.peer_memory;
  return plan;
}

bool sets(const Options& o, const std::string& key) {
  return std::any_of(o.set.begin(), o.set.end(), [&](const std::string& s) { return s.starts_with(key + "="); });
}

bench::StepBenchOptions step_plan(const Options& o) {
  if (sets(o, "ranks.data")) throw ConfigError("--set ranks.data has no effect on octet bench; choose the number of ranks with --ranks");
  machine::choose_own_gpu();
  bench::StepBenchOptions plan{.config = config_of(o), .recipes = o.recipes, .loads = loads_of(o)};
  plan.ranks = {.device = plan.config.device,
                .ranks = int(o.ranks),
                .repeats = int(o.repeat),
                .trace = !o.trace.empty(),
                .peer_memory = plan.config.comm.peer_memory};
  return plan;
}

// Kinds of measurements, and the options that have an effect on them.
enum Kind : unsigned { kernels = 1, steps = 2, scaling = 4, sums = 8, links = 16, attention = 32, constants = 64 };
Kind kind_of(const Options& o) {
  if (!o.calibrate.empty()) return constants;
  if (o.group == "allreduce") return o.topology ? links : sums;
  if (o.group == "tp-attention") return attention;
  return o.group == "scaling" ? scaling : steps_on_ranks(o) ? steps : kernels;
}
std::string name_of(Kind kind, const Options& o) {
  return kind == constants ? "--calibrate"
         : kind == links   ? "allreduce --topology"
         : kind == steps   ? "step on several ranks"
                           : printable(o.group);
}

void require_options(const std::vector<std::string>& given, const Options& o) {
  constexpr std::pair<std::string_view, unsigned> effects[] = {
      {"--model", kernels | steps | scaling | attention | constants},
      {"--tokens", kernels | steps | scaling | attention | constants},
      {"--sequence", kernels | steps | scaling | attention | constants},
      {"--accumulate", kernels | steps | scaling | constants},
      {"--recipe", kernels | steps | scaling | attention},
      {"--set", kernels | steps | scaling | attention | constants},
      {"--working-set", kernels | constants},
      {"--uneven", kernels | steps},
      {"--sample-ms", kernels | sums | links | constants},
      {"--ranks", steps | scaling | sums | links | attention | constants},
      {"--bytes", sums | links},
      {"--quality-ranks", sums},
      {"--topology", links},
      {"--svg", scaling | sums},
      {"--trace", scaling},
  };
  const Kind kind = kind_of(o);
  for (const std::string& option : given)
    for (const auto& [name, kinds] : effects)
      if (option == name && ((kinds & kind) == 0 || (name == "--uneven" && o.group != "step" && o.group != "all")) &&
          !(name == "--ranks" && o.group == "step"))
        throw ConfigError(format("{} has no effect on octet bench {}; leave it out", option, name_of(kind, o)));
}

// One rank would measure beside the others, which share its memory and processors.
void require_one_rank(const Options& o) {
  if (machine::started_ranks() > 1)
    throw ConfigError(
        format("octet bench {} measures one rank, and {} were started; start it alone, or choose step, scaling, allreduce or tp-attention",
               printable(o.group), machine::started_ranks()));
}

void require_files(const Options& o) {
  for (const std::string& file : {o.json, o.svg, o.trace, o.calibrate})
    if (!file.empty()) require_writable(file);
}

// Of several processes, the one of rank 0 shows it.
template <class Result>
ExitCode show(const Options& o, const Result& result, bool reports = true) {
  if (!reports) return ExitCode::done;
  if constexpr (requires { bench::svg_text(result); })
    if (!o.svg.empty()) write_file(o.svg, bench::svg_text(result));
  output::write(bench::table_text(result));
  if (!o.json.empty()) write_file(o.json, bench::to_json(result).dump(json::Layout::indented, json::Invalid::replace) + "\n");
  return ExitCode::done;
}

// With a timeline of ranks, if it was wanted.
template <class Result>
ExitCode show_steps(const Options& o, const Result& result) {
  const bench::RankFacts& place = result.facts.place;
  if (!o.trace.empty() && place.reports) write_file(o.trace, place.trace);
  return show(o, result, place.reports);
}

ExitCode measure_sums(const Options& o) {
  bench::AllReduceOptions plan = all_reduce_plan(o);
  plan.limit = !o.svg.empty();
  if (plan.limit && machine::number_of(bench::rank_wish(plan)) == 1)
    throw ConfigError("--svg: one rank exchanges nothing, so there is no bandwidth to draw; start several, as with --ranks 2");
  const bench::AllReduceResult result = bench::measure_all_reduce(plan);
  return show(o, result, result.reports);
}

ExitCode measure_links(const Options& o) {
  const bench::Topology result = bench::measure_topology(all_reduce_plan(o));
  return show(o, result, result.reports);
}

ExitCode measure_scaling(const Options& o) {
  bench::StepBenchOptions plan = step_plan(o);
  if (o.accumulate == 0 && !sets(o, "train.accumulate")) plan.config.train.accumulate = 0;
  return show_steps(o, bench::measure_scaling(plan));
}

ExitCode measure_steps(const Options& o) { return show_steps(o, bench::measure_steps_on_ranks(step_plan(o))); }

ExitCode measure_attention(const Options& o) {
  machine::choose_own_gpu();
  const bench::TensorAttentionResult result =
      bench::measure_tensor_attention({.config = config_of(o), .recipes = o.recipes, .ranks = int(o.ranks), .repeats = int(o.repeat)});
  return show(o, result, result.reports);
}

// The constants of octet plan --machine, from steps of this process, and from sums of ranks that --ranks asks for.
ExitCode measure_constants(const Options& o) {
  if (o.group != "all") throw ConfigError(format("--calibrate measures the machine, not {}: leave one of them out", printable(o.group)));
  const bench::BenchOptions plan = plan_of(o);
  const bool gpu = machine::device_named(o.device) != Device::cpu;
  const std::int64_t bytes = std::int64_t(gpu ? 256 : 16) << 20;
  bench::NetworkRates network;
  if (o.ranks > 1 || machine::started_ranks() > 1)
    network = bench::measure_network({.bytes = {bytes}, .device = o.device, .ranks = int(o.ranks), .effort = plan.effort});
  if (!network.reports) return ExitCode::done;
  const bench::Calibration c =
      bench::calibrate(plan.config, default_fp8_recipe, plan.effort, network, machine::machine_constants(gpu ? "h100" : "cpu2"));
  write_file(o.calibrate, config::to_toml(c.constants, config::Comments::help));
  output::print("steps reach {}% of their floor in BF16 and {}% under {}\n", fixed(100 * c.share, 0), fixed(100 * c.eight_bit_share, 0),
                default_fp8_recipe);
  if (network.link > 0) output::print("links send {} GB/s per rank\n", fixed(network.link / 1e9, 3));
  if (network.network > 0)
    output::print("the network sends {} GB/s per rank, {} GB/s per node of {}\n", fixed(network.network / 1e9, 3),
                  fixed(network.network * network.per_node() / 1e9, 3), network.per_node());
  output::print("not measured here, as of {}: {}\n", gpu ? "h100" : "cpu2", joined(c.kept));
  return ExitCode::done;
}

ExitCode measure_kernels(const Options& o) {
  require_one_rank(o);
  heed_signals();
  bench::BenchOptions options = plan_of(o);
  options.effort.stopped = train::stop_requested;
  const bench::Result result = bench::run(options);
  const ExitCode shown = show(o, result);
  if (!result.stopped) return shown;
  log::warn("stopped by a signal: these are the measurements that were complete");
  return ExitCode::interrupted;
}

ExitCode measure(const Options& o, const std::vector<std::string>& given) {
  require_options(given, o);
  if (o.quiet) log::set_quiet(true);
  require_files(o);
  switch (kind_of(o)) {
    case sums: return measure_sums(o);
    case links: return measure_links(o);
    case scaling: return measure_scaling(o);
    case steps: return measure_steps(o);
    case attention: return measure_attention(o);
    case constants: return measure_constants(o);
    default: return measure_kernels(o);
  }
}

}  // namespace

void add_bench(Program& program) {
  auto o = std::make_shared<Options>();
  o->bytes = {"1K", "16K", "256K", "4M", "64M"};
  o->quality_ranks = {"2", "4", "8", "16", "32", "64"};
  Command command = program.command(
      "bench", "Measure kernels and training steps, compared with the limits of this machine",
      "  octet bench                                      everything, at the demo model's shapes on a CPU, Qwen2.5-0.5B's on a GPU\n"
      "  octet bench gemm --model gpt2-124m --tokens 2048 --sequence 512\n"
      "  octet bench step --recipe bf16,current --accumulate 32 --set optim.m=bf16 --set optim.v=bf16 --json step.json\n"
      "  octet bench step --ranks 2 --recipe bf16,current  steps of several ranks\n"
      "  octet bench scaling --ranks 4 --svg scaling.svg   steps on 1, 2 and 4 ranks\n"
      "  octet bench allreduce --ranks 4                  sums over ranks: speed, and their error in 8 bits\n"
      "  octet bench tp-attention --ranks 4 --recipe bf16,current  attention divided among ranks: time, bytes, error\n"
      "  octet bench --calibrate cluster.toml             constants for octet plan --machine cluster.toml\n"
      "Memory-bound rows are compared with the copy of a large tensor, GEMM and attention with the fastest matrix product, all measured "
      "in\n"
      "the same run. A step is compared with its floor: GEMM operations at the rates of their types, attention at its own measured rate,\n"
      "bytes of all other ops at copy bandwidth, without overlap. See docs/benchmarks.md.");
  command.positional("what", o->group, joined(bench::groups) + ", " + std::string(other_groups), false);
  command.option("--device", o->device, "auto (the GPU if there is one), cpu or gpu", {.one_of = {"auto", "cpu", "gpu"}});
  command.option("--model", o->model, "a named size, whose shapes are measured (model.size)");
  command.option("--tokens", o->tokens, "tokens per micro-batch; 0: 1024 on a CPU, 16384 on a GPU", {.at_least = 0});
  command.option("--sequence", o->sequence,
                 "tokens per sequence; 0: 256 on a CPU, 4096 on a GPU, or fewer if --tokens or the model requires it", {.at_least = 0});
  command.option("--accumulate", o->accumulate,
                 "micro-batches per step; scaling: of all ranks in a strong step; 0: 1, or as few as all ranks can divide",
                 {.at_least = 0, .at_most = 65536});
  command.option("--recipe", o->recipes, "recipes to measure; default: bf16 and the recipes of octet compare; on ranks that of recipe.name",
                 ',');
  command.option("--repeat", o->repeat, "samples of each row: their median and quartiles are shown", {.at_least = 1, .at_most = 10000});
  command.option("--sample-ms", o->sample_ms, "milliseconds of one sample; 0: 5 on a CPU, 20 on a GPU", {.at_least = 0, .at_most = 10000});
  command.option("--working-set", o->working_set_mib, "MiB of buffers to rotate over; 0: several times the last-level cache",
                 {.at_least = 0, .at_most = 65536});
  command.option("--uneven", o->uneven,
                 "step: routers prefer some experts, by biases from 0 to this of their choices; scores are near 1 / experts; 0: equal "
                 "loads; left out: those that first weights give",
                 {.at_least = 0, .at_most = 1});
  command.option("--json", o->json, "file to write the same rows to, in base units");
  command.option("--set", o->set, "one key of the configuration, such as optim.m=bf16; may be repeated");
  command.option(
      "--ranks", o->ranks,
      "step, scaling, allreduce, tp-attention: ranks, as threads; 0: those that a launcher started, or 1 for step and 2 for the others",
      {.at_least = 0, .at_most = 1024});
  command.option("--bytes", o->bytes, "allreduce: sizes of the tensors to sum", ',');
  command.option("--quality-ranks", o->quality_ranks, "allreduce: numbers of ranks whose sums are compared with FP64", ',');
  command.option("--svg", o->svg, "scaling, allreduce: file of a picture");
  command.option("--trace", o->trace, "scaling: file of a timeline of two steps, with a row per rank and queue (Chrome, Perfetto)");
  command.option("--calibrate", o->calibrate,
                 "measure the constants of octet plan --machine and write them to this file; on several ranks also those of links, and of "
                 "the network between hosts");
  command.flag("--topology", o->topology,
               "allreduce: hosts, devices and links of the ranks, and the bandwidth of each pair, instead of sums");
  command.flag("--quiet", o->quiet, "print the table only");
  command.run([o, command] { return measure(*o, command.given()); });
}

}  // namespace octet::cli
