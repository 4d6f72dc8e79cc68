// Octet as a library: a small model with random weights learns in FP8 to count, token t + 1 = (7 t + 3) mod 64.

#include <cstdio>
#include <exception>

#include "octet/machine/machine.hpp"
#include "octet/train/step/readout.hpp"
#include "octet/train/step/step.hpp"

using namespace octet;

namespace {

constexpr std::int64_t rows = 8, length = 32, vocabulary = 64;
constexpr int steps = 40;

/// Rows of tokens, each of which begins elsewhere, and beside every token the one that follows it.
data::Batch counting(int step) {
  data::Batch batch;
  batch.rows = rows, batch.length = length;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t token = (step * rows + row) * 29 % vocabulary;
    for (std::int64_t i = 0; i < length; ++i) {
      batch.inputs.push_back(std::int32_t(token));
      token = (7 * token + 3) % vocabulary;
      batch.targets.push_back(std::int32_t(token));
    }
  }
  return batch;
}

bool learns() {
  const models::ModelShape shape{.family = "llama",
                                 .width = 64,
                                 .layers = 2,
                                 .heads = 4,
                                 .kv_heads = 2,
                                 .head_dim = 16,
                                 .hidden = 128,
                                 .vocabulary = vocabulary,
                                 .max_sequence = length};
  const train::EngineConfig config{
      .shape = shape, .precision = {.recipe = "current"}, .optimizer = optim::OptimizerConfig{}, .sequence = length};
  const Device device = machine::device_named("auto");
  train::Engine engine(config, device, machine::machine_target(device));
  engine.parameters.initialize(engine.stream, 1);
  train::StepRunner runner(engine);
  float first = 0, last = 0;
  for (int step = 0; step < steps; ++step) {
    const data::Batch batch = counting(step);
    runner.run({&batch, 1}, {.learning_rate = 1e-2}, [&] { last = train::read_out(engine).loss; });
    if (step == 0) first = last;
    if (step % 10 == 0 || step == steps - 1) std::printf("step %2d  loss %.4f\n", step + 1, double(last));
  }
  return last < first / 2;
}

}  // namespace

int main() {
  try {
    return learns() ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "embed: %s\n", e.what());
    return 2;
  }
}
