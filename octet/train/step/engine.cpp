#include "octet/train/step/engine.hpp"

#include "octet/ops/sum_of_squares/sum_of_squares.hpp"

namespace octet::train {
namespace {

// Modules read copies of divided masters in the type of activations, where a GEMM can read them as they are.
nn::ParameterStorage storage_of(const optim::AdamWConfig& c, DType activations) {
  return {.values = c.storage().master,
          .gradients = c.storage().gradients,
          .copies = activations == DType::bf16 ? Storage::bf16 : Storage::f32};
}

nn::Share share_of(const EngineConfig& c, const comm::Communicator* ranks) {
  if (ranks == nullptr) return {};
  const bool divides = c.optimizer && ranks->size() > 1;
  return {
      .part = ranks->rank(), .parts = ranks->size(), .masters = divides && c.ranks.zero >= 1, .gradients = divides && c.ranks.zero >= 2};
}

}  // namespace

Engine::Engine(const EngineConfig& c, Device device, Target target, comm::Communicator* ranks)
    : stream(device, target),
      precision(c.precision),
      model(models::make_model(c.shape, c.model, precision)),
      parameters(stream, *model, c.optimizer.has_value(),
                 c.optimizer ? storage_of(*c.optimizer, precision.activations()) : nn::ParameterStorage{}, share_of(c, ranks)),
      ranks_(ranks != nullptr ? ranks : &self_) {
  precision.require_patterns_used();
  if (c.document_mask && !model->masks_documents())
    throw ConfigError(
        format("data.document_mask = true: models of the family {} read over the borders of documents; set it to false", c.shape.family));
  precision.allocate(stream);
  model->allocate(stream, c.sequence);
  if (c.optimizer) optimizer.emplace(stream, *c.optimizer, parameters.slices());
  const auto scaling = c.loss_scale.mode_for(precision.activations());
  if (c.optimizer && scaling != optim::LossScaleConfig::Mode::off)
    loss_scale.emplace(stream, c.loss_scale, scaling == optim::LossScaleConfig::Mode::fixed);
  if (c.average) average.emplace(stream, parameters);
  if (c.optimizer && ranks_->size() > 1) {
    gradient_sums.emplace(stream, *ranks_, parameters, c.comm);
    if (parameters.share().masters) divided_weights.emplace(*ranks_, parameters);
    for (Parameter* p : parameters.list()) p->gradient.set_rank(ranks_->rank());
  }
  const auto zeros = [&](DType d) { return stream.zeros({1}, d, Lifetime::run, Category::optimizer); };
  loss_sum_ = zeros(DType::f64), counted_ = zeros(DType::i64), mean_loss_ = zeros(DType::f32), nonfinite_ = zeros(DType::i64),
  parameter_squares_ = zeros(DType::f64);
  if (c.document_mask && c.optimizer) gradient_factor_ = zeros(DType::f32);
}

void Engine::begin_micro_batch(const parallel::GradientSums::MicroBatch& micro_batch) {
  parameters.begin_micro_batch(stream, optimizer ? optimizer->updates() : Tensor{});
  if (gradient_sums) gradient_sums->begin_micro_batch(micro_batch);
}

std::vector<float> Engine::flat_gradients() {
  return gradient_sums ? gradient_sums->gathered_values(stream, parameters) : nn::flat_values(stream, parameters.gradients());
}

void Engine::update(double learning_rate) {
  optimizer->measure(stream);
  if (divided_weights) {
    ranks_->all_reduce(stream, optimizer->sum_of_squares(), comm::Reduction::sum);
    ranks_->all_reduce(stream, optimizer->maxima(), comm::Reduction::max);
  }
  optimizer->apply(stream, learning_rate, mean_loss_, nonfinite_, gradient_factor_, loss_scale ? loss_scale->scale() : Tensor{});
  publish_weights();
}

void Engine::publish_weights() {
  if (divided_weights) divided_weights->publish(stream, std::vector{optimizer->scalars()});
}

void Engine::visit_state(StateVisitor& visitor) {
  visitor.section("model", parameters);
  if (optimizer) visitor.section("optimizer", *optimizer);
  if (loss_scale) visitor.section("loss_scale", *loss_scale);
  if (average) visitor.section("average", *average);
  visitor.section("quantizers", precision);
  if (gradient_sums) visitor.section("gradient_sums", *gradient_sums);
  else visitor.unused("gradient_sums");
  visitor.state("parameter_squares", parameter_squares_);
}

void Engine::measure_parameters() {
  const std::vector<Stored> values = parameters.values();
  const Scope scope(stream);
  const Tensor each = stream.empty({std::int64_t(values.size())}, DType::f64);
  ops::sum_of_squares(stream, {.x = values, .sums = each, .total = parameter_squares_});
}

}  // namespace octet::train
