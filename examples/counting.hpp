#pragma once

#include <cstdint>
#include <string>

#include "octet/train/step/readout.hpp"
#include "octet/train/step/step.hpp"

// The task of the examples: to count. The token after t is (7 t + 3) mod 64, so a model that has learnt has a loss near 0.

namespace counting {

inline constexpr std::int64_t rows = 8, length = 32, vocabulary = 64;

/// Rows of tokens, each of which begins elsewhere, and beside every token the one that follows it.
inline octet::data::Batch batch(int step) {
  octet::data::Batch out;
  out.rows = rows, out.length = length;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t token = (step * rows + row) * 29 % vocabulary;
    for (std::int64_t i = 0; i < length; ++i) {
      out.inputs.push_back(std::int32_t(token));
      token = (7 * token + 3) % vocabulary;
      out.targets.push_back(std::int32_t(token));
    }
  }
  return out;
}

/// A small model of the task, of a registered family, under a registered recipe.
inline octet::train::EngineConfig config(const std::string& family, const std::string& recipe) {
  return {.shape = {.family = family,
                    .width = 64,
                    .layers = 2,
                    .heads = 4,
                    .kv_heads = 2,
                    .head_dim = 16,
                    .hidden = 128,
                    .vocabulary = vocabulary,
                    .max_sequence = length},
          .precision = {.recipe = recipe},
          .optimizer = octet::optim::OptimizerConfig{},
          .sequence = length};
}

/// Trains an engine's model from random weights; returns the loss of the last step.
inline float train(octet::train::Engine& engine, int steps) {
  namespace train = octet::train;
  engine.parameters.initialize(engine.stream, 1);
  train::StepRunner runner(engine);
  runner.calibrate(1, [] { return batch(0); });  // for recipes whose scales come from past steps
  float loss = 0;
  for (int step = 0; step < steps; ++step) {
    const octet::data::Batch next = batch(step);
    runner.run({&next, 1}, {.learning_rate = 1e-2}, [&] { loss = train::read_out(engine).loss; });
  }
  return loss;
}

}  // namespace counting
