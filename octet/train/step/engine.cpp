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
          .ends = c.optimizer->coded_ends && !c.shape.tied && c.shape.mtp_depth == 0,
          .codes = !c.average};
}

nn::Shard shard_of(const EngineConfig& c, const comm::Communicator& ranks) {
  const bool shards = c.optimizer && ranks.size() > 1;
  return {.index = ranks.rank(), .count = ranks.size(), .sharded = shards ? nn::Sharded(c.ranks.zero) : nn::Sharded::nothing};
}

// Experts have no copies where each is on one rank.
nn::Shards shards_of(const EngineConfig& c, parallel::Axes& axes) {
  return {shard_of(c, axes.shards()), shard_of(c, axes.shards_of_stacks()), axes.experts().rank(), axes.experts().size()};
}

// Codes kept from step to step would be those of all weights.
scaling::PrecisionConfig precision_of(const EngineConfig& c, parallel::Axes& axes) {
  require_layout(layout_of(c, axes.sequence_groups()), subject_of(c, axes.sequence_groups()));
  scaling::PrecisionConfig out = c.precision;
  if (shard_of(c, axes.shards()).shards(nn::Sharded::weights)) out.weights = scaling::WeightCodes::on_demand;
  out.frozen_weights = bool(c.adapters);
  return out;
}

// A tied embedding is on two stages, unless one has both ends. Beside adapters it has no gradient.
Parameter* shared_by_stages(const EngineConfig& c, models::Model& model) {
  return folds(c.ranks.schedule) || c.adapters ? nullptr : model.shared_by_ends();
}

// With the tables and scales of its quantizers, which say how parameters can be stored.
std::unique_ptr<models::Model> make_model(Stream& stream, const EngineConfig& c, scaling::Precision& precision, parallel::Axes& axes,
                                          const nn::Objective& objective, nn::DropoutDraws& draws) {
  models::ModelOptions options = c.model;
  options.objective = &objective;
  options.partition = &axes.partition(), options.sequences = &axes.sequences();
  options.experts = &axes.expert_exchange();
  if (axes.has_stages()) options.chunks = chunks_of_stages(c, stream.target())[std::size_t(axes.pipeline().rank())];
  std::unique_ptr<models::Model> model = models::make_model(c.shape, options, precision);
  models::attach_adapters(*model, c.adapters, precision, axes.partition(), draws);
  if (c.optimizer && c.adapters.dropout > 0) draws.allocate(stream, c.seed);
  precision.require_patterns_used();
  precision.allocate(stream);
  if (c.document_mask && !model->masks_documents())
    throw ConfigError(
        format("data.document_mask = true: models of the family {} read over the borders of documents; set it to false", c.shape.family));
  if (c.shape.mtp_depth > 0 && c.preference)
    throw ConfigError(
        format("model.mtp_depth = {}: further tokens are not predicted from pairs of answers (dpo.beta); set it to 0", c.shape.mtp_depth));
  if (c.preference && !c.document_mask)
    throw ConfigError(
        format("dpo.beta = {}: pairs of answers lie side by side in a sequence; set data.document_mask = true", c.preference.beta));
  return model;
}

}  // namespace

Engine::Engine(const EngineConfig& c, Device device, Target target, comm::Communicator* ranks)
    : axes(ranks, c.ranks, c.comm),
      stream(device, target),
      precision(precision_of(c, axes)),
      objective(nn::make_objective(c.preference)),
      model(make_model(stream, c, precision, axes, *objective, draws)),
      frozen(stream, *model, precision.activations(), shards_of(c, axes)),
      parameters(stream, *model, c.optimizer.has_value(), storage_of(c, precision.activations()), shards_of(c, axes)),
      sharding(stream, axes, parameters, frozen.buckets(), c.comm, c.optimizer.has_value(), shared_by_stages(c, *model)),
      weight_scales(stream, axes.parts(), *model),
      pipeline(stream, *model, axes.pipeline(), c.ranks.schedule, int(c.ranks.chunks_of_stage()), c.comm.pipeline, sequence_member(),
               axes.turns()),
      stage_parameters(c, stream.target(), axes.pipeline(), parameters),
      stage_frozen(c, stream.target(), axes.pipeline(), frozen.list()),
      shared_scales(c, axes, stage_parameters),
      longest_sequence(c.sequence) {
  model->allocate(stream, c.sequence);
  pipeline.recordings().allow(!axes.divides_experts());  // the host reads how many rows come
  model->set_block_weights(&sharding.weights());
  if (c.optimizer) optimizer.emplace(stream, *c.optimizer, parameters.slices());
  const auto scaling = c.loss_scale.mode_for(precision.activations());
  if (c.optimizer && scaling != optim::LossScaleConfig::Mode::off)
    loss_scale.emplace(stream, c.loss_scale, scaling == optim::LossScaleConfig::Mode::fixed);
  if (c.average) average.emplace(stream, parameters);
  const auto zeros = [&](DType d) { return stream.zeros({1}, d, Lifetime::run, Category::optimizer); };
  if (objective->of_pairs()) preferences_ = stream.zeros({ops::preference_sums}, DType::f64, Lifetime::run, Category::optimizer);
  if (c.shape.mtp_depth > 0) ahead_sum_ = zeros(DType::f64), ahead_counted_ = zeros(DType::i64);
  loss_sum_ = zeros(DType::f64), counted_ = zeros(DType::i64), mean_loss_ = zeros(DType::f32), nonfinite_ = zeros(DType::i64),
  parameter_squares_ = zeros(DType::f64);
  if (c.document_mask && c.optimizer) gradient_factor_ = zeros(DType::f32);
}

nn::LossSums Engine::new_loss_sums(Region region) {
  const Tensor preferences = objective->of_pairs() ? stream.zeros({ops::preference_sums}, DType::f64, region) : Tensor{};
  return {stream.zeros({1}, DType::f64, region), stream.zeros({1}, DType::i64, region), preferences};
}

void Engine::initialize(std::uint64_t seed) {
  frozen.initialize(stream, seed);
  parameters.initialize(stream, seed);
}

models::TokenBatch Engine::upload(const data::Batch& batch, Region region) {
  return train::upload(stream, batch, region, sequence_member());
}

void Engine::begin_micro_batch(int micro_batch) {
  parameters.begin_micro_batch();
  sharding.begin_micro_batch(micro_batch);
  resume_micro_batch(micro_batch);
}

void Engine::resume_micro_batch(int micro_batch) {
  const Tensor updates = optimizer ? optimizer->updates() : Tensor{};
  parameters.number_draws(stream, updates, micro_batch);
  sharding.resume_micro_batch(micro_batch);
  draws.begin_micro_batch(stream, updates, std::int64_t(micro_batch) * axes.sequence_groups() + axes.sequence_group());
}

// Batches of a step have one shape.
void Engine::begin_draws(const data::Batch& batch) {
  const SequenceMember member = sequence_member();
  draws.set_sequence(batch.length, member.member, member.members);
}

Pipeline::Step Engine::step_of(const scaling::Pass& pass, std::int64_t tokens, bool exchanges) {
  return {.pass = pass,
          .sums = loss_sums(),
          .factor = loss_factor(tokens),
          .before = [this](int micro_batch) { begin_micro_batch(micro_batch); },
          .resumed = [this](int micro_batch) { resume_micro_batch(micro_batch); },
          .after = [this] { sharding.join(stream); },
          .exchanges = exchanges && !sharding.gradient_sums().empty()};
}

bool Engine::train(std::span<const data::Batch> micro_batches, const scaling::Pass& pass, std::int64_t tokens,
                   const std::function<bool()>& proceeds, const parallel::Turns::Piece& piece) {
  sharding.begin_step(int(micro_batches.size()), true);
  begin_draws(micro_batches.front());
  Pipeline::Step step = step_of(pass, tokens, true);
  step.proceeds = proceeds, step.piece = piece;
  if (!pipeline.train(micro_batches, step)) return false;
  sharding.end_step(stream);
  return true;
}

void Engine::train_one(const data::Batch& batch, const scaling::Pass& pass, std::int64_t tokens) {
  sharding.begin_step(1, false);
  begin_draws(batch);
  pipeline.train_one(batch, step_of(pass, tokens, false));
}

// Of the parameters here, in their order.
std::vector<std::vector<float>> Engine::whole_gradients() {
  const std::vector<float> own = sharding.gradient_sums().gathered_values(stream);
  std::vector<std::vector<float>> out;
  std::size_t at = 0;
  for (const Parameter* p : parameters.list()) {
    const auto values = std::span(own).subspan(at, std::size_t(p->shape.count()));
    out.push_back(axes.parts().whole_values(stream, p->cut, values));
    at += values.size();
  }
  return out;
}

std::vector<float> Engine::flat_gradients() {
  std::vector<float> out;
  for (const std::vector<float>& values : stage_parameters.with_other_stages(stream, whole_gradients()))
    out.insert(out.end(), values.begin(), values.end());
  return out;
}

void Engine::update(double learning_rate, const optim::StepLimits& limits) {
  optimizer->measure(stream);
  sharding.sum_over_parts(stream, optimizer->sum_of_squares());
  sharding.max_over_masters(stream, optimizer->maxima());
  optimizer->apply(stream, learning_rate, mean_loss_, nonfinite_, gradient_factor_, loss_scale ? loss_scale->scale() : Tensor{}, limits);
  publish_weights();
}

void Engine::publish_weights() { sharding.weights().publish(stream, optimizer->scalars()); }

void Engine::quantize_weights(const scaling::Pass& pass) {
  sharding.weights().encode(stream, pass);
  model->refresh(stream, pass);
}

void Engine::visit_state(StateVisitor& visitor) {
  visit_values(visitor);
  visitor.section("quantizers", precision);
}

void Engine::visit_values(StateVisitor& visitor) {
  visitor.section("model", parameters);
  visitor.section("frozen", frozen);
  if (optimizer) visitor.section("optimizer", *optimizer);
  if (loss_scale) visitor.section("loss_scale", *loss_scale);
  if (average) visitor.section("average", *average);
  sharding.visit_state(visitor);
  visitor.section("routers", model->routers());
  visitor.state("parameter_squares", parameter_squares_);
  stage_parameters.each_absent([&](const std::string& path) {
    for (const char* part : {"model.", "optimizer.", "average.", "gradient_sums.mu.", "gradient_sums."}) visitor.elsewhere(part + path);
  });
}

void Engine::measure_parameters() {
  std::vector<Stored> values;
  for (const ParameterSlice& s : parameters.slices())
    values.push_back(s.counted() < s.value.count() ? s.value.part(0, s.counted()) : s.value);
  const Scope scope(stream);
  const Tensor each = stream.empty({std::int64_t(values.size())}, DType::f64);
  ops::sum_of_squares(stream, {.x = values, .sums = each, .total = parameter_squares_});
  sharding.sum_over_parts(stream, parameter_squares_);
}

}  // namespace octet::train
