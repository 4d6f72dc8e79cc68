#include "octet/train/step/step.hpp"

#include <algorithm>

#include "octet/ops/cross_entropy/cross_entropy.hpp"
#include "octet/ops/quantize/health.hpp"
#include "octet/parallel/host_values.hpp"

namespace octet::train {
namespace {

// Weights are counted whenever they are quantized, micro-batches in steps that are measured.
constexpr scaling::Pass of_weights(bool measured) {
  return {.kind = scaling::Pass::Kind::train, .keep = Lifetime::micro_batch, .measure_noise = measured};
}
constexpr scaling::Pass of_micro_batch(bool measured) {
  return {.kind = scaling::Pass::Kind::train, .keep = Lifetime::micro_batch, .count = measured, .measure_noise = measured};
}

// Tokens of a step per target of it, on all ranks.
float tokens_per_target(Engine& e, std::span<const data::Batch> micro_batches, std::int64_t tokens) {
  std::int64_t targets = 0;
  for (const auto& batch : micro_batches)
    targets += std::count_if(batch.targets.begin(), batch.targets.end(), [](std::int32_t target) { return target >= 0; });
  if (e.ranks().size() > 1) targets = parallel::total(e.stream, e.ranks(), targets) / e.axes.context().size();
  return float(double(tokens) / double(std::max<std::int64_t>(targets, 1)));
}

}  // namespace

std::int64_t tokens_of(std::span<const data::Batch> micro_batches) {
  std::int64_t tokens = 0;
  for (const auto& batch : micro_batches) tokens += batch.rows * batch.length;
  return tokens;
}

StepRunner::StepRunner(Engine& engine) : engine_(engine) {
  engine_.publish_weights();
  quantize_weights(true);
}

bool StepRunner::run(std::span<const data::Batch> micro_batches, const StepOptions& options, const std::function<void()>& read) {
  const std::int64_t tokens = tokens_of(micro_batches) * engine_.axes.sequence_groups();
  const auto tell = [&](StepPart part) {
    if (options.listener != nullptr) options.listener->begins(part);
  };
  if (engine_.pipeline) {
    tell(StepPart::micro_batch);
    run_pipeline(micro_batches, tokens, options.measure);
  }
  for (const auto& batch : engine_.pipeline ? std::span<const data::Batch>() : micro_batches) {
    if (options.stopped != nullptr && options.stopped()) {
      engine_.precision.slots().clear_measurements(engine_.stream);
      quantize_weights_again();
      return false;
    }
    tell(StepPart::micro_batch);
    run_micro_batch(batch, {.tokens = tokens,
                            .measured = options.measure,
                            .place = {.first = &batch == &micro_batches.front(), .last = &batch == &micro_batches.back()}});
  }
  tell(StepPart::results);
  if (engine_.gradient_sums && !engine_.stream.apart_from_host()) engine_.gradient_sums->require_done();
  if (const Tensor factor = engine_.gradient_factor()) {
    const float value = tokens_per_target(engine_, micro_batches, tokens);
    octet::upload(engine_.stream, &value, factor);
  }
  sum_results();
  tell(StepPart::update);
  if (options.before_update) options.before_update();
  update(options);
  tell(StepPart::read_out);
  if (read) read();
  tell(StepPart::next_codes);
  engine_.precision.end_step(engine_.stream, engine_.optimizer->skip());
  if (engine_.loss_scale) engine_.loss_scale->end_step(engine_.stream, engine_.optimizer->skip());
  clear_sums();
  quantize_weights(options.measure_next);
  return true;
}

bool StepRunner::calibrate(std::int64_t accumulate, const std::function<data::Batch()>& next, bool (*stopped)()) {
  std::vector<data::Batch> read;
  for (std::int64_t i = 0; i < engine_.precision.calibration_passes(); ++i) {
    if (stopped != nullptr && stopped()) return false;
    if (i < accumulate) read.push_back(next());
    const data::Batch& batch = read[std::size_t(i % accumulate)];
    run_micro_batch(batch, {.tokens = accumulate * batch.rows * batch.length * engine_.axes.sequence_groups(),
                            .measured = false,
                            .place = {.exchanges = false}});
    sum_maxima();
    engine_.precision.end_step(engine_.stream, engine_.optimizer->skip());
    quantize_weights_again();
  }
  return true;
}

Pipeline::Step StepRunner::in_flight(std::int64_t tokens, bool measured, bool exchanges) {
  Engine& e = engine_;
  return {.pass = of_micro_batch(measured),
          .sums = e.loss_sums(),
          .factor = e.loss_factor(tokens),
          .before = [&e](int micro_batch) { e.begin_in_flight(micro_batch); },
          .last_begins_exchanges = exchanges && e.gradient_sums};
}

void StepRunner::run_pipeline(std::span<const data::Batch> micro_batches, std::int64_t tokens, bool measured) {
  engine_.begin_micro_batches(int(micro_batches.size()), true);
  engine_.pipeline->train(micro_batches, in_flight(tokens, measured, true));
  engine_.end_micro_batch();
}

void StepRunner::run_micro_batch(const data::Batch& batch, const MicroBatch& m) {
  Engine& e = engine_;
  if (e.pipeline) {
    e.begin_micro_batches(1, false);
    e.pipeline->train_one(batch, in_flight(m.tokens, m.measured, m.place.exchanges));
    return e.end_micro_batch();
  }
  const scaling::Pass pass = of_micro_batch(m.measured);
  const Scope micro_batch(e.stream, pass.keep);
  const models::TokenBatch on_device = e.upload(batch, pass.keep);
  e.begin_micro_batch(m.place);
  e.micro_steps.run(e.stream, {batch.rows, batch.length, m.tokens, m.measured, e.form_of(m.place)}, [&] {
    e.model->forward(e.stream, on_device, pass, e.loss_sums(), e.loss_factor(m.tokens));
    e.model->backward(e.stream, on_device, pass);
    e.end_micro_batch();
  });
}

// Of all ranks: the inputs of the update besides gradients, and the maxima from which scales come.
void StepRunner::sum_results() {
  Engine& e = engine_;
  const scaling::SlotTable& slots = e.precision.slots();
  ops::count_nonfinite(e.stream, slots.health(0), slots.size(), e.nonfinite());
  for (const Tensor& t : {e.loss_sums().sum, e.loss_sums().counted}) {
    e.ranks().all_reduce(e.stream, t, comm::Reduction::sum);
    if (e.pipeline) e.axes.pipeline().all_reduce(e.stream, t, comm::Reduction::sum);  // the last stage has them
  }
  e.all_ranks().all_reduce(e.stream, e.nonfinite(), comm::Reduction::sum);
  sum_maxima();
}

void StepRunner::sum_maxima() {
  const scaling::SlotTable& slots = engine_.precision.slots();
  if (slots.size() > 0) engine_.all_ranks().all_reduce(engine_.stream, slots.amax(), comm::Reduction::max);
}

void StepRunner::update(const StepOptions& options) {
  Engine& e = engine_;
  ops::mean_loss(e.stream, e.loss_sums().sum, e.loss_sums().counted, e.mean_loss());
  e.update(options.learning_rate, options.limits);
  if (options.measure) e.measure_parameters();
}

void StepRunner::clear_sums() {
  engine_.parameters.clear_gradients(engine_.stream);
  clear(engine_.stream, engine_.loss_sums().sum), clear(engine_.stream, engine_.loss_sums().counted);
}

void StepRunner::quantize_weights(bool measured) { engine_.quantize_weights(of_weights(measured)); }

// Weights did not change, but their scales may be new, and their maxima are to be measured.
void StepRunner::quantize_weights_again() {
  clear_sums();
  engine_.parameters.mark_changed();
  quantize_weights(true);
}

}  // namespace octet::train
