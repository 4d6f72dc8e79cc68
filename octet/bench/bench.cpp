#include "octet/bench/bench.hpp"

#include <algorithm>

#include "octet/base/log.hpp"
#include "octet/base/text.hpp"
#include "octet/bench/progress.hpp"
#include "octet/ops/attention/attention.hpp"
#include "octet/ops/gemm/gemm.hpp"
#include "octet/machine/machine.hpp"
#include "octet/tensor/cpu/threads.hpp"

namespace octet::bench {
namespace {

bool wants(const BenchOptions& options, std::string_view group) {
  return std::find(options.groups.begin(), options.groups.end(), group) != options.groups.end();
}

std::vector<train::RunConfig> under_each_recipe(const BenchOptions& options) {
  std::vector<std::string> names = options.recipes;
  if (names.empty()) names = scaling::compared_recipes(), names.insert(names.begin(), "bf16");
  std::vector<train::RunConfig> out(names.size(), options.config);
  for (std::size_t i = 0; i < names.size(); ++i) {
    out[i].recipe.recipe = names[i];
    options.loads.configure(out[i]);
    scaling::make_recipe(names[i], options.config.recipe.options);  // an unknown name is refused here, with the nearest one
  }
  return out;
}

using Measure = void (*)(Subject&, std::vector<Row>&);

void measure_groups(const BenchOptions& options, Subject& s, std::vector<Row>& rows) {
  constexpr Measure measures[] = {measure_gemms,       measure_quantize, measure_attention, measure_norms,
                                  measure_activations, measure_experts,  measure_optimizer};
  Progress progress(std::size_t(std::count_if(std::begin(groups), std::begin(groups) + std::size(measures),
                                              [&](const auto& group) { return wants(options, group); })));
  for (std::size_t i = 0; i < std::size(measures); ++i) {
    if (!wants(options, groups[i])) continue;
    progress.begin(format("{}", groups[i]));
    measures[i](s, rows);
  }
}

// Rows of attention alone: measured already, or now.
std::vector<Row> attention_rows(Subject& s, const std::vector<Row>& rows) {
  std::vector<Row> out;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(out),
               [](const Row& r) { return r.group == "attention" && r.unit == Unit::flops; });
  if (out.empty()) measure_attention_products(s, out);
  return out;
}

void record_limits(const Limits& limits, double copy, Device device, Result& out) {
  out.copy_bytes_per_second = copy;
  out.bf16_flops_per_second = limits.matrix_flops_per_second(DType::bf16);
  if (device == Device::cpu) out.f32_flops_per_second = limits.matrix_flops_per_second(DType::f32);
  else out.fp8_flops_per_second = limits.matrix_flops_per_second(DType::e4m3);
}

// Everything except the timed steps, on a stream that is freed afterwards; returns the floors of the steps.
std::vector<Floor> measure_ops(const BenchOptions& options, const std::vector<train::RunConfig>& configs, Device device, Target target,
                               Result& out) {
  Stream stream(device, target);
  const RandomData random(stream);
  Limits limits(stream, random, out.effort);
  log::info("measuring limits ...");
  record_limits(limits, limits.copy_bytes_per_second(), device, out);
  const models::ModelShape shape = options.config.model.shape();
  const train::DryRun dry = train::dry_run(train::engine_config(configs.front()), target, 1, 1);
  Subject s{.stream = stream,
            .random = random,
            .limits = limits,
            .effort = out.effort,
            .shape = shape,
            .tokens = out.tokens,
            .sequence = out.sequence,
            .sites = sites_of(dry.plan, shape),
            .gradients = options.config.optim.storage().gradients};
  for (const auto& c : configs) s.planned.push_back(plan_sites(stream, s.sites, c.recipe));
  measure_groups(options, s, out.rows);
  std::vector<Floor> floors;
  if (!wants(options, "step")) return floors;
  const std::vector<Row> attention = attention_rows(s, out.rows);
  for (const auto& c : configs) floors.push_back(floor_of_step(s, c, attention));
  return floors;
}

}  // namespace

Result run(const BenchOptions& options) {
  const std::vector<train::RunConfig> configs = under_each_recipe(options);
  if (options.config.threads > 0) cpu::set_threads(int(options.config.threads));
  const Device device = machine::device_named(options.config.device);
  const Target target = machine::machine_target(device, options.config.deterministic);
  Result out{.device = machine::device_name(device), .model = options.config.model.name(), .effort = options.effort};
  out.libraries = device == Device::cpu ? "oneDNN " + ops::gemm_library() : ops::gemm_library(device) + ", " + ops::attention_library();
  out.sequence = options.config.data.sequence_length, out.tokens = options.config.train.batch * out.sequence;
  if (out.effort.working_set_bytes == 0) out.effort.working_set_bytes = beyond_cache_bytes(device);
  try {
    const std::vector<Floor> floors = measure_ops(options, configs, device, target, out);
    Progress progress(floors.size());
    for (std::size_t i = 0; i < floors.size(); ++i) {
      if (out.effort.stopped != nullptr && out.effort.stopped()) throw Stopped();
      progress.begin("steps in " + configs[i].recipe.recipe);
      out.steps.push_back(measure_step(configs[i], device, target, out.effort.repeats, floors[i], options.loads));
    }
  } catch (const Stopped&) {
    out.stopped = true;
  }
  return out;
}

}  // namespace octet::bench
