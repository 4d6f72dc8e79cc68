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

// Tokens of a step per target of it, or per pair, on all ranks.
float tokens_per_target(Engine& e, std::span<const data::Batch> micro_batches, std::int64_t tokens) {
  std::int64_t targets = 0;
  for (const auto& batch : micro_batches) targets += batch.counted();
  targets = parallel::total(e.stream, e.ranks(), targets) / e.axes.context().size();
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
  quantize_weights_again();
}

bool StepRunner::run(std::span<const data::Batch> micro_batches, const StepOptions& options, const std::function<void()>& read) {
  const std::int64_t tokens = tokens_of(micro_batches) * engine_.axes.sequence_groups();
  const auto tell = [&](StepPhase part) {
    if (options.listener != nullptr) options.listener->begins(part);
  };
  const auto proceeds = [&] {
    if (options.stopped != nullptr && options.stopped()) return false;
    tell(StepPhase::micro_batch);
    return true;
  };
  parallel::Turns::Piece piece;
  if (options.listener != nullptr)
    piece = [&](const std::string& pass, std::string_view part, double begin, double end) {
      options.listener->piece(pass, part, begin, end);
    };
  if (!engine_.train(micro_batches, of_micro_batch(options.measure), tokens, proceeds, piece)) {
    quantize_weights_again();
    return false;
  }
  tell(StepPhase::results);
  if (!engine_.stream.apart_from_host()) engine_.sharding.gradient_sums().require_done();
  if (const Tensor factor = engine_.gradient_factor()) {
    const float value = tokens_per_target(engine_, micro_batches, tokens);
    octet::upload(engine_.stream, &value, factor);
  }
  sum_results();
  tell(StepPhase::update);
  if (options.before_update) options.before_update();
  update(options);
  tell(StepPhase::read_out);
  if (read) read();
  tell(StepPhase::next_codes);
  engine_.precision.end_step(engine_.stream, engine_.optimizer->skip());
  if (engine_.loss_scale) engine_.loss_scale->end_step(engine_.stream, engine_.optimizer->skip());
  engine_.model->routers().end_step(engine_.stream, engine_.optimizer->skip());
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
    engine_.train_one(batch, of_micro_batch(false), accumulate * batch.rows * batch.length * engine_.axes.sequence_groups());
    sum_maxima();
    engine_.precision.end_step(engine_.stream, engine_.optimizer->skip());
    quantize_weights_again();
  }
  return true;
}

// Of all ranks: the inputs of the update besides gradients, and the maxima from which scales come.
void StepRunner::sum_results() {
  Engine& e = engine_;
  const scaling::SlotTable& slots = e.precision.slots();
  ops::count_nonfinite(e.stream, slots.health(0), slots.size(), e.nonfinite());
  // Of stages, the last one has the loss, and each the loads of its own layers. Tensor ranks have the loss of all rows, and loads of their
  // own.
  const auto sum_over = [&](std::initializer_list<comm::Communicator*> groups, std::initializer_list<Tensor> tensors) {
    for (const Tensor& t : tensors)
      for (comm::Communicator* ranks : groups)
        if (t) ranks->all_reduce(e.stream, t, comm::Reduction::sum);
  };
  const nn::LossSums sums = e.loss_sums();
  sum_over({&e.ranks(), &e.axes.pipeline()}, {sums.sum, sums.counted, sums.preferences, sums.ahead_sum, sums.ahead_counted});
  sum_over({&e.ranks(), &e.axes.pipeline(), &e.axes.tensor()}, {e.model->routers().counts(), e.model->routers().sums()});
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
  engine_.model->routers().clear_loads(engine_.stream);
  const nn::LossSums& sums = engine_.loss_sums();
  for (const Tensor& t : {sums.sum, sums.counted, sums.preferences, sums.ahead_sum, sums.ahead_counted})
    if (t) clear(engine_.stream, t);
}

void StepRunner::quantize_weights(bool measured) { engine_.quantize_weights(of_weights(measured)); }

// Weights did not change, but their scales may be new. Their maxima are measured again: those that are there may be of a part of the
// weights, or of the weights as another engine reads them, whose state was restored.
void StepRunner::quantize_weights_again() {
  clear_sums();
  engine_.precision.slots().clear_measurements(engine_.stream);
  engine_.parameters.mark_changed();
  quantize_weights(true);
}

}  // namespace octet::train
