#include "octet/train/dry_run.hpp"

#include "octet/train/evaluate.hpp"
#include "octet/train/step.hpp"

namespace octet::train {
namespace {

Work work_of_step(Engine& engine, const std::vector<data::Batch>& micro_batches) {
  const Work before = engine.stream.work();
  run_step(engine, micro_batches, {.measure = true});
  finish_step(engine);
  return engine.stream.work() - before;
}

// Micro-batches are alike in work, and each gives its memory back before the next: two show what any number needs.
Work work_of_step(Engine& engine, const data::Batch& shape, std::int64_t accumulate) {
  const Work one = work_of_step(engine, std::vector{shape});
  if (accumulate == 1) return one;
  const Work two = work_of_step(engine, std::vector{shape, shape});
  return one + (accumulate - 1) * (two - one);
}

}  // namespace

DryRun dry_run(const EngineConfig& config, Target target, std::int64_t batch, std::int64_t accumulate) {
  Engine engine(config, Device::null, target);
  data::Batch shape;
  shape.rows = batch, shape.length = config.sequence;
  DryRun out;
  engine.parameters.initialize(engine.stream, 0);
  prepare(engine);
  if (engine.optimizer) out.step = work_of_step(engine, shape, accumulate);
  evaluate_batch(engine, shape);
  out.memory = engine.stream.arena().peak();
  out.parameters = engine.parameters.count();
  out.plan = engine.precision.rows();
  out.quantizers = engine.precision.slots().slots();
  return out;
}

void require_memory(const DryRun& dry, std::size_t available, const LoopConfig& loop) {
  if (dry.memory.total <= available) return;
  std::string remedies = "use a shorter data.sequence_length, model.recompute = true, or a smaller model";
  if (loop.batch > 1) remedies = format("set train.batch = {} and train.accumulate = {}, or ", loop.batch / 2, loop.accumulate * 2) + remedies;
  std::string largest;
  for (std::size_t c = 0; c < categories; ++c)
    if (dry.memory.by_category[c] * 5 > dry.memory.total)
      largest += format("{}{} {}", largest.empty() ? "" : ", ", name(Category(c)), bytes_text(double(dry.memory.by_category[c])));
  throw DeviceError(format("the run needs {} of memory ({}) and {} are free: {}", bytes_text(double(dry.memory.total)), largest,
                           bytes_text(double(available)), remedies));
}

}  // namespace octet::train
