#include "octet/train/dry_run.hpp"

#include "octet/train/evaluate.hpp"
#include "octet/train/step.hpp"

namespace octet::train {

DryRun dry_run(const EngineConfig& config, Target target, std::int64_t batch, std::int64_t accumulate) {
  Engine engine(config, Device::null, target);
  data::Batch shape;
  shape.rows = batch, shape.length = config.sequence;
  const std::vector<data::Batch> micro_batches(std::size_t(accumulate), shape);
  DryRun out;
  engine.parameters.initialize(engine.stream, 0);
  prepare(engine);
  const Work before = engine.stream.work();
  if (engine.optimizer) {
    run_step(engine, micro_batches, {.measure = true});
    finish_step(engine);
  }
  const Work after = engine.stream.work();
  evaluate_batch(engine, shape);
  out.memory = engine.stream.arena().peak();
  out.step = {after.ops - before.ops, after.flops - before.flops, after.gemm_flops - before.gemm_flops, after.bytes - before.bytes};
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
