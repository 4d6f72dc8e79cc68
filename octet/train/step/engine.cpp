#include "octet/train/step/engine.hpp"

#include "octet/ops/sum_of_squares/sum_of_squares.hpp"
#include "octet/parallel/host_values.hpp"
#include "octet/train/step/engine_layout.hpp"
#include "octet/train/step/stage.hpp"

namespace octet::train {
namespace {

// Modules read copies of divided masters as 8-bit codes, or in the type of activations, where a GEMM can read them as they are. Means of
// weights are those of values.
nn::ParameterStorage storage_of(const EngineConfig& c, DType activations) {
  if (!c.optimizer) return {};
  return {.values = c.optimizer->storage().master,
          .gradients = c.optimizer->storage().gradients,
          .copies = activations == DType::bf16 ? Storage::bf16 : Storage::f32,
          .codes = !c.average};
}

nn::Share share_of(const EngineConfig& c, const comm::Communicator& ranks) {
  const bool divides = c.optimizer && ranks.size() > 1;
  return {.part = ranks.rank(),
          .parts = ranks.size(),
          .masters = divides && c.ranks.zero >= 1,
          .gradients = divides && c.ranks.zero >= 2,
          .weights = divides && c.ranks.zero >= 3};
}

// Codes kept from step to step would be those of all weights.
scaling::PrecisionConfig precision_of(const EngineConfig& c, const comm::Communicator& ranks) {
  scaling::PrecisionConfig out = c.precision;
  if (share_of(c, ranks).weights) out.weights = scaling::WeightCodes::on_demand;
  return out;
}

// Before anything is made for them.
std::optional<parallel::TensorGroup> make_tensor_group(parallel::Axes& axes, const EngineConfig& c) {
  require_layout(layout_of(c, axes.sequence_groups()), subject_of(c, axes.sequence_groups()));
  if (!axes.divides_layers()) return {};
  return std::optional<parallel::TensorGroup>(std::in_place, axes.tensor(), c.comm.tensor);
}

std::optional<parallel::ContextGroup> make_context_group(parallel::Axes& axes) {
  if (!axes.divides_sequences()) return {};
  return std::optional<parallel::ContextGroup>(std::in_place, axes.context());
}

// With the tables and scales of its quantizers, which say how parameters can be stored.
std::unique_ptr<models::Model> make_model(Stream& stream, const EngineConfig& c, scaling::Precision& precision, nn::Partition* partition,
                                          nn::RowExchange* sequences, parallel::Axes& axes) {
  models::ModelOptions options = c.model;
  options.partition = partition, options.sequences = sequences;
  if (axes.has_stages()) options.chunks = chunks_of_stages(c, stream.target())[std::size_t(axes.pipeline().rank())];
  std::unique_ptr<models::Model> model = models::make_model(c.shape, options, precision);
  precision.require_patterns_used();
  precision.allocate(stream);
  return model;
}

}  // namespace

Engine::Engine(const EngineConfig& c, Device device, Target target, comm::Communicator* ranks)
    : axes(ranks, c.ranks),
      tensor_group(make_tensor_group(axes, c)),
      stream(device, target),
      context_group(make_context_group(axes)),
      precision(precision_of(c, axes.data())),
      model(make_model(stream, c, precision, tensor_group ? &*tensor_group : nullptr, context_group ? &*context_group : nullptr, axes)),
      parameters(stream, *model, c.optimizer.has_value(), storage_of(c, precision.activations()), share_of(c, axes.data())) {
  if (c.document_mask && !model->masks_documents())
    throw ConfigError(
        format("data.document_mask = true: models of the family {} read over the borders of documents; set it to false", c.shape.family));
  model->allocate(stream, c.sequence);
  if (c.optimizer) optimizer.emplace(stream, *c.optimizer, parameters.slices());
  const auto scaling = c.loss_scale.mode_for(precision.activations());
  if (c.optimizer && scaling != optim::LossScaleConfig::Mode::off)
    loss_scale.emplace(stream, c.loss_scale, scaling == optim::LossScaleConfig::Mode::fixed);
  if (c.average) average.emplace(stream, parameters);
  if (tensor_group)
    for (const Parameter* p : parameters.list()) tensor_group->reserve(stream, p->shape.count());
  if (c.optimizer && tensor_group) copied_gradients.emplace(*tensor_group, parameters);
  if (c.optimizer && tensor_group && c.comm.overlap && stream.apart_from_host()) {
    beside_products_.emplace(activation_exchanges.emplace(stream));
    tensor_group->set_beside(&*beside_products_);
  }
  if (c.optimizer && axes.data().size() > 1) {
    if (c.comm.overlap && stream.apart_from_host()) exchanges.emplace(stream);
    Stream* const side = exchanges ? &*exchanges : nullptr;
    gradient_sums.emplace(stream, side, axes.data(), parameters, c.comm, copied_gradients ? &*copied_gradients : nullptr);
    if (parameters.share().masters) divided_weights.emplace(stream, side, axes.data(), parameters, partition());
    if (parameters.share().weights) model->set_block_weights(&*divided_weights);
  }
  if (tensor_group) weight_scales.emplace(stream, *tensor_group, *model);
  if (axes.has_stages()) make_pipeline(c);
  // Stages have other parameters, so that all of them draw as one does.
  for (Parameter* p : parameters.list()) p->gradient.set_copy(axes.all().rank() % axes.of_stage());
  const auto zeros = [&](DType d) { return stream.zeros({1}, d, Lifetime::run, Category::optimizer); };
  loss_sum_ = zeros(DType::f64), counted_ = zeros(DType::i64), mean_loss_ = zeros(DType::f32), nonfinite_ = zeros(DType::i64),
  parameter_squares_ = zeros(DType::f64);
  if (c.document_mask && c.optimizer) gradient_factor_ = zeros(DType::f32);
}

void Engine::make_pipeline(const EngineConfig& c) {
  comm::Communicator& stages = axes.pipeline();
  pipeline.emplace(stream, *model, stages, c.ranks.schedule, int(c.ranks.chunks), c.comm.pipeline, sequence_member());
  stage_parameters.emplace(c, stream.target(), stages, parameters.list());
  parallel::reserve_for_values(stream);
  const int last = stages.size() - 1;
  const bool end = stages.rank() == 0 || stages.rank() == last;
  if (c.optimizer && model->shared_by_ends() != nullptr)
    ends_ = stages.split(end ? 0 : 1, stages.rank() == 0 ? 0 : end ? 1 : stages.rank() - 1, end ? 2 : last - 1);
  if (!end) ends_.reset();
  const int first = axes.all().rank() % axes.of_stage();
  if (ends_) ends_->report_to(axes.all(), {first, first + last * axes.of_stage()});
}

comm::Traffic Engine::traffic(comm::Collective c) const {
  comm::Traffic sum = axes.traffic(c);
  if (ends_) sum = sum + ends_->traffic(c);
  return copied_gradients ? sum + copied_gradients->traffic(c) : sum;
}

models::TokenBatch Engine::upload(const data::Batch& batch, Region region) {
  return train::upload(stream, batch, region, sequence_member());
}

void Engine::begin_micro_batch(const parallel::GradientSums::MicroBatch& micro_batch) {
  parameters.begin_micro_batch(stream, optimizer ? optimizer->updates() : Tensor{});
  last_micro_batch_ = micro_batch.last && micro_batch.exchanges;
  if (gradient_sums) gradient_sums->begin_micro_batch(micro_batch);
  if (divided_weights) divided_weights->forget_blocks();
}

void Engine::begin_micro_batches(int count, bool exchanges) {
  last_micro_batch_ = exchanges, in_flight_ = count;
  if (gradient_sums) gradient_sums->begin_micro_batch({.exchanges = exchanges});
}

void Engine::begin_in_flight(int micro_batch) {
  parameters.begin_micro_batch(stream, optimizer ? optimizer->updates() : Tensor{}, micro_batch);
  if (gradient_sums) gradient_sums->begin_in_flight(micro_batch + 1 == in_flight_);
}

// Sums over data ranks are there: of divided gradients, those of the own part, which is the same on both stages.
void Engine::sum_shared_gradient() {
  if (ends_) ends_->all_reduce(stream, model->shared_by_ends()->gradient.stored().values(), comm::Reduction::sum);
}

void Engine::end_micro_batch() {
  if (copied_gradients && !gradient_sums && last_micro_batch_)
    for (const nn::Bucket& b : parameters.buckets()) copied_gradients->sum(stream, b);
  if (gradient_sums) gradient_sums->join(stream);
  if (divided_weights) divided_weights->forget_blocks();
  if (last_micro_batch_) sum_shared_gradient();
}

// Of the parameters here, in their order.
std::vector<std::vector<float>> Engine::whole_gradients() {
  const std::vector<float> own = gradient_sums ? gradient_sums->gathered_values(stream) : nn::flat_values(stream, parameters.gradients());
  std::vector<std::vector<float>> out;
  std::size_t at = 0;
  for (const Parameter* p : parameters.list()) {
    const auto values = std::span(own).subspan(at, std::size_t(p->shape.count()));
    out.push_back(tensor_group ? tensor_group->whole_values(stream, p->cut, values) : std::vector<float>(values.begin(), values.end()));
    at += values.size();
  }
  return out;
}

std::vector<float> Engine::flat_gradients() {
  std::vector<std::vector<float>> all = whole_gradients();
  if (stage_parameters) all = stage_parameters->with_other_stages(stream, std::move(all));
  std::vector<float> out;
  for (const std::vector<float>& values : all) out.insert(out.end(), values.begin(), values.end());
  return out;
}

void Engine::update(double learning_rate, const optim::StepLimits& limits) {
  optimizer->measure(stream);
  if (divided_weights) {
    axes.data().all_reduce(stream, optimizer->sum_of_squares(), comm::Reduction::sum);
    axes.data().all_reduce(stream, optimizer->maxima(), comm::Reduction::max);
  }
  for (comm::Communicator* model_ranks : {&axes.tensor(), &axes.pipeline()})
    if (model_ranks->size() > 1) model_ranks->all_reduce(stream, optimizer->sum_of_squares(), comm::Reduction::sum);
  optimizer->apply(stream, learning_rate, mean_loss_, nonfinite_, gradient_factor_, loss_scale ? loss_scale->scale() : Tensor{}, limits);
  publish_weights();
}

void Engine::publish_weights() {
  if (divided_weights) divided_weights->publish(stream, std::vector{optimizer->scalars()});
}

void Engine::quantize_weights(const scaling::Pass& pass) {
  if (divided_weights) divided_weights->encode(stream, pass);
  model->refresh(stream, pass);
}

void Engine::visit_state(StateVisitor& visitor) {
  visit_values(visitor);
  visitor.section("quantizers", precision);
}

void Engine::visit_values(StateVisitor& visitor) {
  visitor.section("model", parameters);
  if (optimizer) visitor.section("optimizer", *optimizer);
  if (loss_scale) visitor.section("loss_scale", *loss_scale);
  if (average) visitor.section("average", *average);
  if (gradient_sums && !pipeline) visitor.section("gradient_sums", *gradient_sums);
  else visitor.unused("gradient_sums");
  visitor.state("parameter_squares", parameter_squares_);
  if (!stage_parameters) return;
  stage_parameters->each_absent([&](const std::string& path) {
    for (const char* part : {"model.", "optimizer."}) visitor.elsewhere(part + path);
  });
}

void Engine::measure_parameters() {
  std::vector<Stored> values;
  for (const ParameterSlice& s : parameters.slices())
    values.push_back(s.counted() < s.value.count() ? s.value.part(0, s.counted()) : s.value);
  const Scope scope(stream);
  const Tensor each = stream.empty({std::int64_t(values.size())}, DType::f64);
  ops::sum_of_squares(stream, {.x = values, .sums = each, .total = parameter_squares_});
  if (divided_weights) axes.data().all_reduce(stream, parameter_squares_, comm::Reduction::sum);
  for (comm::Communicator* model_ranks : {&axes.tensor(), &axes.pipeline()})
    if (model_ranks->size() > 1) model_ranks->all_reduce(stream, parameter_squares_, comm::Reduction::sum);
}

}  // namespace octet::train
