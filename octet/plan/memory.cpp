#include "octet/plan/memory.hpp"

#include <algorithm>
#include <numeric>

#include "octet/parallel/pipeline/division.hpp"

namespace octet::plan {
namespace {

// Sums with a factor, member by member.
StageMemory scaled(const StageMemory& m, double states, double activations) {
  return {m.weights * states, m.operands * states, m.gradients * states, m.optimizer * states, m.activations * activations,
          m.working,          m.overhead};
}
StageMemory operator+(const StageMemory& a, const StageMemory& b) {
  return {a.weights + b.weights,         a.operands + b.operands, a.gradients + b.gradients, a.optimizer + b.optimizer,
          a.activations + b.activations, a.working + b.working,   a.overhead + b.overhead};
}

// States of so many parameters on one GPU; from stage 2 on gradients, from stage 3 on weights are divided, too.
StageMemory states(double weight, double operands, double gradient, double divided, double parameters, std::int64_t zero,
                   std::int64_t shards) {
  const auto part = [&](std::int64_t from) { return zero >= from ? 1 / double(shards) : 1; };
  return {.weights = parameters * weight * part(3),
          .operands = parameters * operands * part(3),
          .gradients = parameters * gradient * part(2),
          .optimizer = parameters * divided * part(1)};
}

}  // namespace

double rank_parameters(const PlannedModel& m, const Layout& l, const Software& s) {
  const double copied = s.copies_experts ? m.shared_parameters() : 0;
  return (m.dense_parameters() - copied) / double(l.tensor) + copied;
}

std::int64_t shards_of_stacks(const Layout& l, const Software& s) {
  return std::max<std::int64_t>(1, (s.copies_experts ? 1 : l.tensor) * l.shards() / l.experts);
}

double saved_bytes_per_token(const PlannedModel& m, Recomputed recomputed, bool eight_bit) {
  const double h = double(m.shape.width), q = double(m.query_columns()), k = double(m.key_columns()), f = m.active_hidden();
  const double code = eight_bit ? 1 : 2;
  if (recomputed == Recomputed::block) return 2 * h;
  const double norm_inputs = 4 * h, linear_inputs = 2 * code * h, attention = 2 * (q + 2 * k) + 2 * q + (eight_bit ? q : 0);
  const double mlp = (m.gated ? 4 : 2) * f, down_input = code * f;
  const double kept = norm_inputs + attention + mlp;
  return recomputed == Recomputed::norms ? kept : kept + linear_inputs + down_input;
}

// Of each: the token's embedding, the block's output and the gradient of the head's input; the operand of the product that joins two
// inputs; all but the last one's output. Once: the head's input, which the first one reads.
double saved_bytes_ahead(const PlannedModel& m, Recomputed recomputed, bool eight_bit) {
  if (m.ahead() == 0) return 0;
  const double h = double(m.shape.width), each = saved_bytes_per_token(m.layer_ahead(), recomputed, eight_bit) + 6 * h;
  return double(m.ahead()) * (each + (eight_bit ? 1 : 2) * 2 * h + 2 * h);
}

DeferredBytes deferred_bytes_per_token(const PlannedModel& m, const Layout& l) {
  const double t = double(l.tensor), q = double(m.query_columns()) / t, k = double(m.key_columns()) / t, f = m.active_hidden() / t;
  const double code = l.eight_bit ? 1 : 2, both_norms = code * 2 * double(m.shape.width);
  const double inputs = both_norms + code * (q + f), wide = code * (m.gated ? 2 : 1) * f;
  DeferredBytes out{.saved = inputs, .all = inputs + both_norms + code * (q + 2 * k) + wide, .at_once = wide};
  if (l.recomputed == Recomputed::norms) out.saved = code * q, out.at_once += both_norms / 2 + code * f;
  if (l.recomputed == Recomputed::block) out.saved = 0, out.at_once += inputs;
  return out;
}

LayerMemory FormulaMemory::layer_memory(const Layout& l) {
  const Software s = program_(l);
  const double tensor = double(l.tensor), tokens = double(l.micro_batch) * double(job_.sequence) / (tensor * double(l.context));
  const double routed = model_.routed_parameters() / double(l.experts), dense = rank_parameters(model_, l, s);
  LayerMemory out;
  out.layer = states(s.weight, s.operands, s.gradient, s.divided, dense, l.zero, l.shards()) +
              states(s.weight, s.operands, s.gradient, s.divided, routed, l.zero, shards_of_stacks(l, s));
  out.layer.activations = saved_bytes_per_token(model_, l.recomputed, s.eight_bit) * tokens;
  const double ends = model_.end_parameters() / tensor;  // weights that stage 3 does not divide
  out.embedding = out.head = states(s.end_weight, 0, 4, s.end_divided, ends, std::min<std::int64_t>(l.zero, 2), l.shards());
  if (const double ahead = double(model_.ahead()); ahead > 0) {
    const PlannedModel one = model_.layer_ahead();
    const double held = ahead * (rank_parameters(one, l, s) + model_.joining_parameters());
    out.ahead = states(s.weight, s.operands, s.gradient, s.divided, held, l.zero, l.shards()) +
                states(s.weight, s.operands, s.gradient, s.divided, ahead * one.routed_parameters() / double(l.experts), l.zero,
                       shards_of_stacks(l, s));
    out.ahead.activations = saved_bytes_ahead(model_, l.recomputed, s.eight_bit) * tokens;
  }
  out.head_working = s.logit_bytes * tokens * double(model_.shape.padded_vocabulary());
  // A block that is computed again is there once. Two blocks' weights are gathered; gradients of one micro-batch are those of two blocks
  // and of an end.
  if (l.recomputed == Recomputed::block) out.rest.working += saved_bytes_per_token(model_, Recomputed::none, s.eight_bit) * tokens;
  if (l.zero == 3) out.rest.weights += 2 * (s.weight + s.operands) * dense;
  if (l.zero >= 2) out.rest.gradients += 2 * s.gradient * dense + 4 * ends;
  out.rest.overhead = s.fixed_bytes;
  out.fragmentation = s.fragmentation;
  return out;
}

namespace {

// Of each part of the pipeline.
std::vector<std::int64_t> layers_of_parts(const PlannedModel& m, const Layout& l, const Job& job) {
  const bool in_8_bits = l.eight_bit && job.machine.eight_bit_gain > 1;
  const auto products = [&](double parameters) {
    return parallel::Products{.in_8_bits = in_8_bits ? parameters : 0, .in_16_bits = in_8_bits ? 0 : parameters};
  };
  const double ahead = double(m.ahead());
  parallel::Products head = products(ahead * (m.layer_ahead().active_parameters() + m.joining_parameters()));
  head.in_16_bits += (1 + ahead) * m.end_parameters() + ahead * double(job.sequence) * m.score_columns();
  const parallel::LayerCosts costs =
      parallel::layer_costs({products(m.active_parameters())}, head, double(job.sequence), m.score_columns());
  return parallel::divide_layers(m.layers(), int(l.pipeline * l.chunks), job.even_stages ? parallel::LayerCosts{} : costs);
}

}  // namespace

// And the choices of routers that all stages count together.
double border_bytes(const PlannedModel& m, const Layout& l, const Job& job) {
  const nn::Balance& b = m.shape.experts.balance;
  const double choices = b.loss > 0 && b.over == nn::Balance::Over::model ? 4 * double(m.experts.count) : 0;
  return 2 * double(m.shape.width) * double(l.micro_batch) * double(job.sequence) / double(l.tensor * l.context) + choices;
}

std::vector<std::int64_t> layers_of_stages(const PlannedModel& m, const Layout& l, const Job& job) {
  const std::vector<std::int64_t> parts = layers_of_parts(m, l, job);
  std::vector<std::int64_t> out(std::size_t(l.pipeline), 0);
  const parallel::PipelineShape shape = pipeline_shape(l, job);
  for (int part = 0; part < shape.parts(); ++part) out[std::size_t(shape.stage_of(part))] += parts[std::size_t(part)];
  return out;
}

namespace {

// Of each chunk.
std::vector<std::int64_t> layers_of_stage(const std::vector<std::int64_t>& parts, const parallel::PipelineShape& shape, int stage) {
  std::vector<std::int64_t> out;
  for (int chunk = 0; chunk < shape.chunks; ++chunk) out.push_back(parts[std::size_t(shape.part(stage, chunk))]);
  return out;
}

StageMemory of_stage(const LayerMemory& memory, const PlannedModel& m, const std::vector<std::int64_t>& parts, const Layout& l,
                     const Job& job, std::int64_t stage) {
  const std::vector<std::int64_t> layers = layers_of_stage(parts, pipeline_shape(l, job), int(stage));
  const auto chunks_in_flight = [&](parallel::Schedule s) {
    return double(parallel::chunks_in_flight(s, pipeline_shape(l, job), int(stage)));
  };
  // Memory of a micro-batch in flight is kept for the next one, of whichever chunk. Deferred products read their operands alone.
  const double deferred = double(parallel::chunks_deferred(l.schedule, pipeline_shape(l, job), int(stage)));
  const bool all_deferred = l.schedule == parallel::Schedule::zero_bubble;
  const double in_flight = chunks_in_flight(all_deferred ? parallel::Schedule::one_f_one_b : l.schedule);
  const double most_layers = double(*std::max_element(layers.begin(), layers.end())), kept = in_flight * most_layers;
  StageMemory out = scaled(memory.layer, double(std::accumulate(layers.begin(), layers.end(), std::int64_t(0))), kept) + memory.rest;
  if (deferred > 0) {
    const DeferredBytes operands = deferred_bytes_per_token(m, l);
    const double of_layers = most_layers * (deferred * operands.all - (all_deferred ? in_flight : deferred) * operands.saved);
    out.activations += double(l.micro_batch) * double(job.sequence) / double(l.context) * (of_layers - operands.at_once);
  }
  // The output of each, and the one that arrives from the stage before.
  if (l.pipeline > 1) out.activations += (in_flight + (stage > 0 ? 1 : 0)) * border_bytes(m, l, job);
  if (stage == 0) out = out + memory.embedding;
  return out;
}

StageMemory fragmented(StageMemory m, double fragmentation) {
  m.overhead += fragmentation * (m.total() - m.overhead);
  return m;
}

}  // namespace

bool has_second_embedding(const PlannedModel& m, const Layout& l) {
  return m.ahead() > 0 && !m.shape.tied && l.pipeline > 1 && !folds(l.schedule);
}

LayoutMemory stage_memory(const LayerMemory& memory, const PlannedModel& model, const Layout& l, const Job& job) {
  const std::vector<std::int64_t> parts = layers_of_parts(model, l, job);
  LayoutMemory out{of_stage(memory, model, parts, l, job, 0), of_stage(memory, model, parts, l, job, l.pipeline - 1)};
  StageMemory& end = folds(l.schedule) ? out.first : out.last;
  if ((l.pipeline > 1 && !folds(l.schedule)) || !model.shape.tied) end = end + memory.head;
  if (has_second_embedding(model, l)) end = end + memory.embedding;
  end = end + memory.ahead;  // whose backward follows their forward
  end.working += memory.head_working;
  if (l.pipeline == 1) out.first = out.last;
  return {fragmented(out.first, memory.fragmentation), fragmented(out.last, memory.fragmentation)};
}

}  // namespace octet::plan
