#include "octet/train/step/step.hpp"

#include "octet/ops/cross_entropy/cross_entropy.hpp"
#include "octet/ops/quantize/health.hpp"

namespace octet::train {
namespace {

// Weights are counted whenever they are quantized, micro-batches in steps that are measured.
constexpr Pass of_weights{.kind = Pass::Kind::train, .keep = Lifetime::micro_batch};
constexpr Pass of_micro_batch(bool measured) {
  return {.kind = Pass::Kind::train, .keep = Lifetime::micro_batch, .count = measured, .measure_noise = measured};
}

void clear_sums(Engine& e) {
  e.parameters.clear_gradients(e.stream);
  clear(e.stream, e.loss_sums().sum), clear(e.stream, e.loss_sums().counted);
}

// Clears gradients and sums, and quantizes the weights again: their scales may be new, and their maxima are to be measured.
void begin_again(Engine& e) {
  clear_sums(e);
  for (Parameter* p : e.parameters.list()) ++p->version;
  prepare(e);
}

// Forgets what the micro-batches so far have added.
void drop_step(Engine& e) {
  e.precision.slots().clear_measurements(e.stream);
  begin_again(e);
}

std::int64_t tokens_of(std::span<const data::Batch> micro_batches) {
  std::int64_t tokens = 0;
  for (const auto& batch : micro_batches) tokens += batch.rows * batch.length;
  return tokens;
}

// Forward and backward of one micro-batch of a step of `tokens`.
void run_micro_batch(Engine& e, const data::Batch& batch, std::int64_t tokens, bool measured) {
  const Pass pass = of_micro_batch(measured);
  const Scope micro_batch(e.stream, pass.keep);
  const TokenBatch on_device = upload(e.stream, batch, pass.keep);
  e.micro_steps.run(e.stream, {batch.rows, batch.length, tokens, measured}, [&] {
    e.model->forward(e.stream, on_device, pass, e.loss_sums(), 1.0f / float(tokens));
    e.model->backward(e.stream, on_device, pass);
  });
}

}  // namespace

TokenBatch upload(Stream& stream, const data::Batch& batch, Region region) {
  const std::int64_t n = batch.rows * batch.length;
  const Tensor tokens = stream.empty({n}, DType::i32, region, Category::activations),
               targets = stream.empty({n}, DType::i32, region, Category::activations);
  octet::upload(stream, batch.inputs.data(), tokens), octet::upload(stream, batch.targets.data(), targets);
  return {tokens, targets, batch.length};
}

void prepare(Engine& e) { e.model->refresh(e.stream, of_weights); }

bool run_step(Engine& e, std::span<const data::Batch> micro_batches, const StepOptions& options) {
  const std::int64_t tokens = tokens_of(micro_batches);
  for (const auto& batch : micro_batches) {
    if (options.stopped != nullptr && options.stopped()) return drop_step(e), false;
    run_micro_batch(e, batch, tokens, options.measure);
  }
  ops::mean_loss(e.stream, e.loss_sums().sum, e.loss_sums().counted, e.mean_loss());
  const SlotTable& slots = e.precision.slots();
  ops::count_nonfinite(e.stream, slots.health(0), slots.size(), e.nonfinite());
  e.optimizer->step(e.stream, options.learning_rate, e.mean_loss(), e.nonfinite());
  if (options.measure) e.measure_parameters();
  return true;
}

bool calibrate(Engine& e, std::int64_t accumulate, const std::function<data::Batch()>& next, bool (*stopped)()) {
  std::vector<data::Batch> read;
  for (std::int64_t i = 0; i < e.precision.calibration_passes(); ++i) {
    if (stopped != nullptr && stopped()) return false;
    if (i < accumulate) read.push_back(next());
    const data::Batch& batch = read[std::size_t(i % accumulate)];
    run_micro_batch(e, batch, accumulate * batch.rows * batch.length, false);
    e.precision.end_step(e.stream, e.optimizer->skip());
    begin_again(e);
  }
  return true;
}

void finish_step(Engine& e) {
  e.precision.end_step(e.stream, e.optimizer->skip());
  clear_sums(e);
  prepare(e);
}

}  // namespace octet::train
