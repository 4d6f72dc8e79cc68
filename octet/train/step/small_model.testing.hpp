#pragma once

#include "octet/machine/machine.hpp"
#include "octet/tensor/cpu/threads.hpp"
#include "octet/train/step/step.hpp"
#include "tests/testing/testing.hpp"

// Engines small enough for tests, and batches of tokens for them.

namespace octet::train::testing {

/// Models this small would wait for threads longer than they compute. Steps on several threads: TwoRunsOfOneSeedGiveTheSameBits.
[[maybe_unused]] inline const bool on_one_thread = (cpu::set_threads(1), true);

inline models::ModelShape small_shape(const std::string& family) {
  return {.family = family,
          .width = 64,
          .layers = 2,
          .heads = 4,
          .kv_heads = family == "gpt2" ? 4 : 2,
          .head_dim = 16,
          .hidden = 96,
          .vocabulary = 61,
          .max_sequence = 64,
          .tied = family != "llama"};
}

/// Latents of keys, values and queries, whose layers have shapes of every recipe; sets the heads.
inline models::LatentShape small_latent(models::ModelShape& s) {
  s.kv_heads = s.heads, s.head_dim = 64;
  return {.rank = 32, .query_rank = 64, .turned = 32, .value_width = 32};
}

inline EngineConfig small_engine(const std::string& family, const std::string& recipe, const nn::Recompute& recompute = {}) {
  return {.shape = small_shape(family),
          .model = {.recompute = recompute},
          .precision = {.recipe = recipe},
          .optimizer = optim::OptimizerConfig{},
          .sequence = 32};
}

inline data::Batch random_batch(std::int64_t rows, std::int64_t length, std::int64_t vocabulary, std::uint64_t seed) {
  data::Batch b;
  b.rows = rows, b.length = length;
  for (std::int64_t i = 0; i < rows * length; ++i) {
    const RandomWords r = philox(seed, std::uint64_t(i));
    b.inputs.push_back(std::int32_t(r.w[0] % std::uint32_t(vocabulary)));
    b.targets.push_back(std::int32_t(r.w[1] % std::uint32_t(vocabulary)));
  }
  return b;
}

/// The steps of an engine whose weights begin from seed 7.
inline StepRunner begin_steps(Engine& e) {
  e.initialize(7);
  return StepRunner(e);
}

/// The same after `steps` optimizer steps on random batches of 4 x 32 tokens, split into `micro_batches`.
inline StepRunner train_steps(Engine& e, int steps, int micro_batches = 1) {
  StepRunner runner = begin_steps(e);
  for (int s = 0; s < steps; ++s) {
    std::vector<data::Batch> batches;
    for (int m = 0; m < micro_batches; ++m) batches.push_back(random_batch(4 / micro_batches, 32, 61, std::uint64_t(100 * s + m)));
    runner.run(batches, {.learning_rate = 1e-2, .measure = true});
  }
  return runner;
}

}  // namespace octet::train::testing
