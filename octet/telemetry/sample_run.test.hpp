#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "octet/base/text.hpp"
#include "octet/telemetry/comparison.hpp"
#include "octet/telemetry/metrics_writer.hpp"
#include "octet/telemetry/run_record.hpp"
#include "tests/testing/testing.hpp"

// Invented runs that look like real ones: what the report's tests and a look at its rendering start from.

namespace octet::testing {

/// How a recipe of a sample behaves.
struct SampleRecipe {
  std::string name;
  double gap = 0;  // final loss over the baseline's, as a fraction
  double tokens_per_second = 3400;
  double headroom_bits = 0.5;  // typical
  double flushed = 1e-4;       // typical fraction
  bool fp8 = true;
  bool power_of_two = false;
};

inline std::vector<SampleRecipe> sample_recipes() {
  return {{"bf16", 0, 3402, 0, 0, false},
          {"delayed", 0.0021, 3120, 0.8, 2e-4},
          {"current", 0.0009, 3015, 0.02, 1e-4},
          {"rowwise", 0.0006, 2890, 0.5, 3e-5, true, true},
          {"block128", 0.0004, 2710, 0.5, 1e-5, true, true},
          {"mxfp8", -0.0003, 2480, 0.5, 2e-6, true, true},
          {"global", 0.083, 3090, 0.3, 0.02}};
}

struct SampleSize {
  int layers = 6, steps = 400, health_every = 10, eval_every = 50;
};

inline telemetry::RunFacts sample_facts(const SampleRecipe& recipe, std::int64_t seed, const SampleSize& size) {
  telemetry::RunFacts run;
  run.name = format("{}-{}", recipe.name, seed), run.recipe = recipe.name, run.seed = seed, run.baseline = "bf16";
  run.model = {"llama", "tiny", 9840640, size.layers, 320, 5, 5, 896, 4096, 256};
  run.machine = {"AMD EPYC 9B14, AVX-512", 2, "bf16", 1.84e11};
  run.started = "2026-01-31T12:00:00Z", run.state = telemetry::RunState::finished;
  run.flops_per_step = 1.3e11, run.tokens_per_step = 2048, run.steps = size.steps;
  run.gradient_cosine = recipe.fp8 ? 0.9991 - recipe.gap / 4 : 1;
  const struct {
    const char* name;
    std::int64_t out, in;
  } sites[] = {{"attention.qkv", 960, 320}, {"attention.out", 320, 320}, {"mlp.gate_up", 1792, 320}, {"mlp.down", 320, 896}};
  run.plan.push_back({"embedding", "bf16", "embedding: a look-up has no matmul to speed up", {4096, 320}});
  for (int layer = 0; layer < size.layers; ++layer) {
    const bool kept = !recipe.fp8 || layer == 0 || layer == size.layers - 1;
    for (const auto& site : sites) {
      const std::string path = format("layers.{}.{}", layer, site.name);
      run.plan.push_back({path,
                          kept ? "bf16" : recipe.name,
                          !recipe.fp8 ? "the recipe is bf16"
                          : kept      ? "first or last layer, kept by keep.first = 1, keep.last = 1"
                                      : "linear layer",
                          {site.out, site.in}});
      if (kept) continue;
      const std::string block = recipe.name == "block128"  ? "1x128"
                                : recipe.name == "mxfp8"   ? "1x32"
                                : recipe.name == "rowwise" ? "1xall"
                                                           : "tensor";
      run.quantizers.push_back({path, "x", "e4m3", block});
      run.quantizers.push_back({path, "w", "e4m3", recipe.name == "block128" ? "128x128" : block});
      run.quantizers.push_back({path, "dy", recipe.power_of_two ? "e4m3" : "e5m2", block});
    }
  }
  run.plan.push_back({"lm_head", "bf16", "kept by keep.lm_head = true", {4096, 320}});
  run.plan.push_back({"softmax, norms, loss, reductions", "fp32", "always", {}});
  run.memory.categories = {{"weights", 39362560},
                           {"gradients", 39362560},
                           {"optimizer", 78725120},
                           {"activations", recipe.fp8 ? 41200000 : 58900000},
                           {"weights for GEMMs", recipe.fp8 ? 11800000 : 0},
                           {"workspace", 6291456}};
  for (const auto& c : run.memory.categories) run.memory.peak += c.bytes;
  run.config_json = format(
      "{\"model\":{\"family\":\"llama\",\"size\":\"tiny\"},\"precision\":{\"recipe\":\"{}\"},\"data\":{\"folder\":\"data/headers\"},"
      "\"train\":{\"steps\":{},\"seed\":{},\"batch\":8},\"optim\":{\"lr\":0.001,\"betas\":[0.9,0.95]}}",
      recipe.name, size.steps, seed);
  return run;
}

/// One step's scales and, where due, health, with the amax of every quantizer wandering around its own level.
inline void add_snapshot(telemetry::RunRecord& run, const SampleRecipe& recipe, std::int64_t step, double time,
                         const std::vector<float>& noise, bool health) {
  telemetry::ScalesEvent scales{.step = step, .time = time};
  telemetry::HealthEvent h{.step = step, .time = time};
  const auto& quantizers = run.facts.quantizers;
  for (std::size_t i = 0; i < quantizers.size(); ++i) {
    const auto& q = quantizers[i];
    const double wobble = 0.25 * noise[(i * 31 + std::size_t(step)) % noise.size()], slow = noise[i] * 0.7;
    const double level = q.operand == "x"   ? 3 + slow + std::log2(1 + double(step) / 60)
                         : q.operand == "w" ? -2 + slow / 3 + double(step) / 500
                                            : -13 + slow;
    const double amax = std::exp2(level + wobble), top = q.format == "e4m3" ? 448 : 57344;
    // Histories lag behind a growing amax; one scale for the whole model leaves gradients far below the top; blocks vary.
    const double lag = recipe.name == "delayed" ? 1.2 * wobble - (step < 60 && q.operand == "x" ? 0.5 : 0) : 0;
    const double waste = recipe.name == "global" ? (q.operand == "dy" ? 6 : q.operand == "w" ? 3 : 0) + slow : 0;
    const double headroom = std::max(recipe.headroom_bits + 0.4 * recipe.headroom_bits * std::fabs(wobble) + lag + waste, -0.5);
    const double scale = top / amax * std::exp2(-headroom), spread = recipe.power_of_two ? 2 : 0;
    scales.amax.push_back(float(amax)), scales.scale_min.push_back(float(scale));
    scales.scale_max.push_back(float(std::exp2(std::log2(scale) + spread)));
    const double flush = recipe.flushed * std::exp2(slow * 2 + (q.operand == "dy" ? 3 : 0));
    h.headroom_bits.push_back(float(headroom)), h.saturated.push_back(headroom < 0 ? 3e-5f : 0.0f);
    h.flushed.push_back(float(std::min(flush, 0.9))), h.sqnr_db.push_back(float(q.format == "e4m3" ? 31.4 + wobble : 25.5 + wobble)),
        h.nonfinite.push_back(0);
  }
  run.scales.push_back(std::move(scales));
  if (health) run.health.push_back(std::move(h));
}

inline telemetry::RunRecord sample_run(const SampleRecipe& recipe, std::int64_t seed, const SampleSize& size = {}) {
  telemetry::RunRecord run;
  run.facts = sample_facts(recipe, seed, size);
  const auto data = gaussian(std::size_t(size.steps) + 4096, std::uint64_t(seed)),
             own = gaussian(std::size_t(size.steps) + 4096, std::hash<std::string>{}(recipe.name) + std::uint64_t(seed));
  const auto curve = [&](double t) { return 1.32 + 3.4 * std::exp(-t / 18) + 3.6 / std::sqrt(1 + t / 5) - 0.2 * t / size.steps; };
  double time = 0, drift = 0, rate_sum = 0;
  for (int step = 1; step <= size.steps; ++step) {
    const std::size_t i = std::size_t(step);
    drift = 0.97 * drift + 0.0004 * own[i];
    const double gap = 1 + recipe.gap * (1 - std::exp(-step / 60.0)) + drift;
    const double rate = recipe.tokens_per_second * (1 + 0.015 * own[i + 7]);
    time += 2048 / rate, rate_sum += rate;
    const bool bad = recipe.name == "global" && (step == 37 || step == 38);
    run.steps.push_back({.step = step,
                         .time = time,
                         .loss = bad ? NAN : curve(step) * gap + 0.05 * data[i],
                         .loss_z = data[i],
                         .grad_norm = bad ? INFINITY : 0.35 + 4 * std::exp(-step / 15.0) + 0.04 * std::fabs(own[i + 3]),
                         .grad_norm_z = own[i + 3],
                         .learning_rate = 1e-3 * std::min(1.0, step / 20.0),
                         .tokens = step * 2048,
                         .seconds = 2048 / rate,
                         .tokens_per_second = rate,
                         .limit_share = rate / 5600,
                         .param_norm = 100 + step * 0.05,
                         .data_wait = 0.0004,
                         .memory_bytes = run.facts.memory.peak,
                         .skipped = bad});
    if (bad)
      run.incidents.push_back(
          {step, time, "skipped", "layers.2.mlp.down", "amax of the gradient is not finite: the step is skipped on unchanged weights"});
    if (bad)
      run.alerts.push_back({.step = step,
                            .time = time,
                            .rule = "grad_norm_spike",
                            .severity = telemetry::Severity::critical,
                            .path = "layers.2.mlp.down.dy",
                            .value = 41,
                            .threshold = 30,
                            .window = 64,
                            .text = "gradient norm 41 times the median",
                            .remedy = "Look at the batch <&>"});
    if (recipe.fp8) add_snapshot(run, recipe, step, time, own, step % size.health_every == 0);
    if (step % size.eval_every == 0 || step == size.steps)
      run.evals.push_back({step, time, curve(step) * gap + 0.03 + 0.002 * data[0], 65536});
  }
  const double eval = run.evals.empty() ? NAN : run.evals.back().loss;
  run.end = telemetry::EndEvent{size.steps,
                                time,
                                "all steps done",
                                curve(size.steps) * (1 + recipe.gap + drift),
                                eval,
                                rate_sum / size.steps,
                                recipe.name == "global" ? 2 : 0};
  return run;
}

/// Writes the record as a run's folder, which must be there.
inline void write_sample(const std::string& folder, const telemetry::RunRecord& run) {
  telemetry::write_run_facts(folder + "/run.json", run.facts);
  telemetry::MetricsWriter metrics(folder + "/metrics.jsonl");
  for (const auto& e : run.steps) metrics.emit(e);
  for (const auto& e : run.scales) metrics.emit(e);
  for (const auto& e : run.health) metrics.emit(e);
  for (const auto& e : run.evals) metrics.emit(e);
  for (const auto& e : run.incidents) metrics.emit(e);
  for (const auto& e : run.machine) metrics.emit(e);
  for (const auto& e : run.alerts) metrics.emit(e);
  if (run.end) metrics.emit(*run.end);
}

/// Every recipe of sample_recipes() and a twin of the first with `seeds` seeds.
inline std::vector<telemetry::RunRecord> sample_runs(int seeds, const SampleSize& size = {}) {
  std::vector<telemetry::RunRecord> runs;
  for (const auto& recipe : sample_recipes())
    for (int seed = 1; seed <= seeds; ++seed) runs.push_back(sample_run(recipe, seed, size));
  for (int seed = 1; seed <= seeds; ++seed) {
    SampleRecipe twin = sample_recipes()[0];
    twin.name = "bf16 twin", twin.gap = 0.001 * seed;  // the name also seeds its noise
    runs.push_back(sample_run(twin, seed, size));
    runs.back().facts.recipe = runs.back().facts.arm = "bf16", runs.back().facts.twin = 1;
  }
  return runs;
}

}  // namespace octet::testing
