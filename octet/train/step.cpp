#include "octet/train/step.hpp"

#include <cstring>

#include "octet/ops/quantize/health.hpp"
#include "octet/ops/sum_of_squares/sum_of_squares.hpp"

namespace octet::train {
namespace {

constexpr Pass recording{.kind = Pass::Kind::train, .keep = Lifetime::micro_batch};

// mean_loss = sum / counted, on the device.
void average_loss(Engine& e) {
  if (e.stream.device() != Device::cpu) return;
  const nn::LossSums sums = e.loss_sums();
  *e.mean_loss().f32() = float(*sums.sum.as<double>() / double(*sums.counted.as<std::int64_t>()));
}

}  // namespace

TokenBatch upload(Stream& stream, const data::Batch& batch, Region region) {
  const std::int64_t n = batch.rows * batch.length;
  const Tensor tokens = stream.empty({n}, DType::i32, region, Category::activations), targets = stream.empty({n}, DType::i32, region, Category::activations);
  if (stream.device() == Device::cpu) {
    std::memcpy(tokens.data, batch.inputs.data(), tokens.bytes());
    std::memcpy(targets.data, batch.targets.data(), targets.bytes());
  }
  return {tokens, targets, batch.length};
}

void prepare(Engine& e) { e.model->refresh(e.stream, recording); }

void run_step(Engine& e, std::span<const data::Batch> micro_batches, const StepOptions& options) {
  Pass pass = recording;
  pass.measure_noise = options.measure;
  std::int64_t tokens = 0;
  for (const auto& batch : micro_batches) tokens += batch.rows * batch.length;
  for (const auto& batch : micro_batches) {
    const Scope micro_batch(e.stream, pass.keep);
    const TokenBatch on_device = upload(e.stream, batch, pass.keep);
    e.model->forward(e.stream, on_device, pass, e.loss_sums(), 1.0f / float(tokens));
    e.model->backward(e.stream, on_device, pass);
  }
  average_loss(e);
  const SlotTable& slots = e.precision.slots();
  ops::count_nonfinite(e.stream, slots.health(0), slots.size(), e.nonfinite());
  e.optimizer->step(e.stream, options.learning_rate, e.mean_loss(), e.nonfinite());
  if (options.measure) ops::sum_of_squares(e.stream, e.parameters.values(), e.parameter_squares());
}

void finish_step(Engine& e) {
  e.precision.end_step(e.stream, e.optimizer->skip());
  e.parameters.clear_gradients(e.stream);
  clear(e.stream, e.loss_sums().sum), clear(e.stream, e.loss_sums().counted);
  prepare(e);
}

}  // namespace octet::train
