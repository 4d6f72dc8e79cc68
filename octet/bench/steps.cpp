#include "octet/bench/steps.hpp"

#include <algorithm>

#include "octet/machine/machine.hpp"
#include "octet/tensor/timer.hpp"
#include "octet/train/step/step.hpp"

namespace octet::bench {
namespace {

using train::Engine;

// Without health measurement, like most steps of a run.
void step(train::StepRunner& runner, const std::vector<data::Batch>& batches, const std::function<void()>& read = {}) {
  runner.run(batches, {.learning_rate = 1e-5}, read);
}

void time_steps(Engine& e, const train::RunConfig& c, int repeats, const ExpertLoads& loads, StepResult& out) {
  const std::vector<data::Batch> batches = random_batches(c);
  e.initialize(1);
  loads.apply(e);
  train::StepRunner runner(e);
  for (std::int64_t i = 0; i < warm_up_steps(c); ++i) step(runner, batches, [&] { out.fullest_load = ExpertLoads::fullest(e); });
  wait(e.stream);
  Timer timer(e.stream);
  std::vector<double> samples;
  for (int r = 0; r < repeats; ++r) {
    timer.start();
    step(runner, batches);
    samples.push_back(timer.stop());
  }
  out.row.seconds = timing_of(std::move(samples));
}

}  // namespace

std::vector<data::Batch> random_batches(const train::RunConfig& c, std::uint64_t seed) {
  const std::int64_t tokens = c.train.batch * c.data.sequence_length, vocabulary = c.model.shape().vocabulary;
  std::vector<data::Batch> out;
  for (std::int64_t i = 0; i < c.train.accumulate; ++i) {
    const std::uint64_t first = 2 * (seed * std::uint64_t(c.train.accumulate) + std::uint64_t(i));
    data::Batch b;
    b.rows = c.train.batch, b.length = c.data.sequence_length;
    b.inputs = random_tokens(tokens, vocabulary, first), b.targets = random_tokens(tokens, vocabulary, first + 1);
    out.push_back(std::move(b));
  }
  return out;
}

std::int64_t warm_up_steps(const train::RunConfig& c) {
  constexpr std::int64_t micro_steps = 4;
  if (c.ranks.pipeline > 1) return micro_steps;  // some parts run once per step
  return std::max<std::int64_t>(2, ceil_div(micro_steps, c.train.accumulate));
}

Floor floor_of_step(Subject& s, const train::RunConfig& c, const std::vector<Row>& attention) {
  const train::DryRun dry = train::dry_run(train::engine_config(c), s.stream.target(), c.train.batch, c.train.accumulate);
  return floor_of(s, dry.step, attention);
}

StepResult measure_step(const train::RunConfig& c, Device device, Target target, int repeats, const Floor& floor,
                        const ExpertLoads& loads) {
  train::EngineConfig config = train::engine_config(c);
  loads.configure(config);
  train::require_memory(train::dry_run(config, target, c.train.batch, c.train.accumulate), machine::available_bytes(device), c.train);
  Engine engine(config, device, target);
  const double tokens = double(c.tokens_per_step());
  StepResult out{.floor = floor};
  out.row = {.group = "step",
             .name = "step",
             .shape = format("{}x{}x{}", c.train.accumulate, c.train.batch, c.data.sequence_length),
             .precision = c.recipe.recipe,
             .unit = Unit::tokens,
             .amount = tokens,
             .limit = tokens / floor.seconds()};
  time_steps(engine, c, repeats, loads, out);
  out.peak_bytes = double(engine.stream.arena().peak().total);
  return out;
}

}  // namespace octet::bench
