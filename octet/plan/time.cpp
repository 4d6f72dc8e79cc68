#include "octet/plan/time.hpp"

#include <algorithm>

#include "octet/parallel/expert_group.hpp"
#include "octet/plan/memory.hpp"

namespace octet::plan {
namespace {

double share(std::int64_t ranks) { return double(ranks - 1) / double(ranks); }

// Bytes per second that each GPU of an axis sends, whose neighbours are `stride` ranks apart: links within a node. Between nodes its
// members on one node share their network cards.
double rate(const Job& job, std::int64_t stride, std::int64_t ranks) {
  const machine::MachineConstants& c = job.machine;
  if (stride * ranks <= job.per_node()) return c.link_gbs * 1e9;
  const std::int64_t members = std::clamp<std::int64_t>(job.per_node() / stride, 1, ranks);
  return std::min(c.link_gbs, double(members) * c.network_gbs) * 1e9;
}

// Seconds of an exchange of `bytes` per GPU among neighbours, where each sends the same to every other one: what leaves the node goes
// through its own card.
double exchange_seconds(const Job& job, double bytes, std::int64_t ranks) {
  const std::int64_t members = std::min(ranks, job.per_node());
  const double inside = bytes * double(members - 1) / double(ranks - 1), outside = bytes - inside;
  return std::max(inside / (job.machine.link_gbs * 1e9), outside / (job.machine.network_gbs * 1e9));
}

// Parameters of one GPU's share of a layer.
double local_parameters(const PlannedModel& m, const Layout& l) {
  return m.dense_parameters() / double(l.tensor) + m.routed_parameters() / double(l.experts);
}

// Bytes that a step of the data axis sends at a stage of so many layers. Stages 2 and 3 send in every micro-batch.
double data_bytes(const PlannedModel& m, const Layout& l, const Job& job, const Software& s, double layers) {
  const double blocks = layers * m.dense_parameters() / double(l.tensor), ends = m.end_parameters() / double(l.tensor);
  const double divided = share(l.shards());
  const std::int64_t same = std::max<std::int64_t>(1, l.tensor * l.shards() / l.experts);
  const double routed = layers * m.routed_parameters() / double(l.experts) * share(same) / std::max(divided, 1e-9);
  const double parameters = blocks + (divided > 0 ? routed : 0);
  constexpr double end_gradient = 4, end_weight = 2;
  if (l.zero == 0) return divided * 2 * (s.sent_gradient * parameters + end_gradient * ends);
  const double micro_batches = double(job.micro_batches(l));
  const double gradients = s.sent_gradient * parameters * (l.zero >= 2 ? micro_batches : 1);
  const double weights = s.sent_weight * parameters * (l.zero == 3 ? 2 * micro_batches : 1);
  return divided * (gradients + weights + (end_gradient + end_weight) * ends);
}

// Bytes that the products of a layer write, in BF16, and their gradients of weights in FP32, which are read, too: y and dx of each of four
// matrices. Narrow layers and parts of divided ones have more of them per operation.
double written_by_products(const PlannedModel& m, const Layout& l, double group_tokens) {
  const double t = double(l.tensor), h = double(m.shape.width), q = double(m.query_columns()), k = double(m.key_columns());
  const double f = m.active_hidden(), outputs = (q + 2 * k + (m.gated ? 2 : 1) * f) / t + 2 * h, inputs = 2 * h + (q + f) / t;
  return 2 * group_tokens * (outputs + inputs) + 8 * local_parameters(m, l);
}

// Seconds of one layer and of the head, for one micro-batch on one GPU.
struct LayerTime {
  StepTime layer;
  double head = 0;
};

LayerTime layer_time(const PlannedModel& m, const Layout& l, const Job& job, const Software& s) {
  const machine::MachineConstants& c = job.machine;
  const double tokens = double(l.micro_batch) * double(job.sequence) / (double(l.tensor) * double(l.context));
  const double h = double(m.shape.width), q = double(m.query_columns()), k = double(m.key_columns()), f = m.active_hidden();
  const double gain = s.eight_bit ? c.eight_bit_gain * s.product_rate : 1, memory_rate = c.memory_gbs * 1e9;
  LayerTime out;
  StepTime& t = out.layer;
  t.gemms = 6 * m.active_parameters() * tokens / (c.gemm_tflops * 1e12 * gain) +
            c.output_passes * written_by_products(m, l, tokens * double(l.tensor)) / memory_rate;
  t.attention = 6 * double(job.sequence) * m.score_columns() * tokens / (c.attention_tflops * 1e12);
  const double bytes = (24 * h + 8 * (q + k) + (m.gated ? 16 : 12) * f) * (s.eight_bit ? c.eight_bit_traffic + s.encoding_traffic : 1);
  t.elementwise = bytes * tokens / memory_rate;
  if (l.recomputed == Recomputed::block) t.recomputed = t.gemms / 3 + t.attention / 3.5 + t.elementwise / 3;
  if (l.recomputed == Recomputed::norms) t.recomputed = (8 * h + 6 * f) * tokens / memory_rate;
  t.passes = s.passes * local_parameters(m, l) / memory_rate;
  t.launches = (c.launch_microseconds + s.launch_microseconds) / 1e6;
  out.head = 6 * m.end_parameters() * tokens / (c.head_tflops * 1e12);
  return out;
}

// Bytes of one layer and micro-batch that a GPU sends on each axis within a block.
Volume layer_volume(const PlannedModel& m, const Layout& l, const Job& job, const Software& s) {
  const double tokens = double(l.micro_batch) * double(job.sequence) / double(l.context);  // of a tensor group
  const double h = double(m.shape.width), gathered = s.eight_bit ? 1.5 : 2;                // of gathers in codes and sums in BF16
  Volume out;
  out.tensor = 8 * h * gathered * share(l.tensor) * tokens;
  // K and V once forward, again backward, and their gradients.
  out.context = 6 * 2 * double(m.key_columns()) / double(l.tensor) * share(l.context) * tokens;
  // A token's row goes once to each other rank with one of its experts, x twice and dy; a sum comes back for both. Computed again, x goes
  // once more.
  const double code = s.eight_bit ? 1 : 2, again = l.recomputed == Recomputed::block ? code : 0;
  if (l.experts > 1)
    out.experts = (3 * code + 2 * 2 + again) * h * tokens / double(l.tensor) * m.expert_layers() / double(m.layers()) *
                  double(l.experts - 1) * parallel::visit_chance(m.experts.per_token, m.experts.count, m.experts.count / l.experts);
  return out;
}

// The part of the data axis that computation does not hide: that of stages 0 and 1 runs under the backward of the last micro-batch and the
// forward of the first one, that of stages 2 and 3 under all of them. Hidden transfers slow down the computation whose memory they use.
double exposed_data(const PlannedModel& m, const Layout& l, const Job& job, const Software& s, double layers, double stage_seconds) {
  if (l.shards() == 1) return 0;
  const double seconds = data_bytes(m, l, job, s, layers) / rate(job, l.tensor, l.shards());
  const double hides = l.zero >= 2 ? stage_seconds * double(job.micro_batches(l)) : stage_seconds;
  constexpr double contention = 0.2;                                   // fitted
  const double exposed = std::max(seconds / layers, seconds - hides);  // a layer's is exposed in any case
  return exposed + contention * std::min(seconds, hides);
}

// Of a micro-batch on a stage, in `mean` seconds: a third of all that is not computed again is forward's, a third of GEMMs are the products
// of weights' gradients.
parallel::PipelineCosts costs_of(const StepTime& step, double mean, double micro_batches) {
  const double forward = (mean - step.recomputed / micro_batches) / 3, products = step.gemms / micro_batches / 3;
  return {.forward = forward, .input_gradient = mean - forward - products, .weight_gradient = products};
}

}  // namespace

Volume volume(const PlannedModel& m, const Layout& l, const Job& job, const Software& s) {
  const double layers = double(std::ranges::max(layers_of_stages(m, l, job))), micro_batches = double(job.micro_batches(l));
  Volume out = layer_volume(m, l, job, s);
  for (double* bytes : {&out.tensor, &out.context, &out.experts}) *bytes *= layers * micro_batches;
  if (l.pipeline > 1) out.pipeline = 2 * double(l.chunks) * border_bytes(m, l, job) * micro_batches;
  out.data = data_bytes(m, l, job, s, layers);
  return out;
}

StepTime step_time(const PlannedModel& m, const Layout& l, const Job& job, const Software& s) {
  const LayerTime one = layer_time(m, l, job, s);
  const Volume sent = layer_volume(m, l, job, s);
  const std::vector<std::int64_t> stages = layers_of_stages(m, l, job);
  const double micro_batches = double(job.micro_batches(l)), pipeline = double(l.pipeline), mean_layers = double(m.layers()) / pipeline;
  StepTime layer = one.layer;
  layer.tensor = (s.overlaps_tensor ? job.machine.exposed_tensor : 1) * sent.tensor / (job.machine.link_gbs * 1e9);
  // A ring hides its transfers under attention.
  layer.context =
      std::max(0.1 * sent.context / rate(job, l.tensor, l.context), sent.context / rate(job, l.tensor, l.context) - layer.attention);
  if (l.context == 1) layer.context = 0;
  if (l.experts > 1) layer.experts = exchange_seconds(job, sent.experts, l.experts);
  StepTime out;
  for (const auto member : {&StepTime::gemms, &StepTime::attention, &StepTime::elementwise, &StepTime::recomputed, &StepTime::tensor,
                            &StepTime::context, &StepTime::experts, &StepTime::passes, &StepTime::launches})
    out.*member = layer.*member * mean_layers * micro_batches;
  out.head = one.head / pipeline * micro_batches;
  const double mean = out.total() / micro_batches, of_layer = (mean - one.head / pipeline) / mean_layers;
  const double layers = double(std::ranges::max(stages));
  const double slowest = std::max(layers * of_layer, double(folds(l.schedule) ? stages.front() : stages.back()) * of_layer + one.head);
  out.imbalance = (slowest - mean) * micro_batches;
  out.bubble = mean * micro_batches * parallel::bubble_ratio(l.schedule, pipeline_shape(l, job), costs_of(out, mean, micro_batches));
  if (l.pipeline > 1) out.transfers = 2 * (pipeline - 1) * border_bytes(m, l, job) / rate(job, l.tensor * l.context * l.data, l.pipeline);
  const double updated = layers * local_parameters(m, l) / (l.zero > 0 ? double(l.shards()) : 1);
  out.optimizer = (2 * s.divided + s.gradient) * updated / (job.machine.memory_gbs * 1e9);
  out.data = exposed_data(m, l, job, s, layers, slowest);
  return out;
}

double token_rate(const StepTime& t, const Job& job) { return job.tokens() / t.total() / double(job.gpus); }

double model_flops_rate(const StepTime& t, const PlannedModel& m, const Job& job) {
  const double per_token =
      double(m.layers()) * (6 * m.active_parameters() + 6 * double(job.sequence) * m.score_columns()) + 6 * m.end_parameters();
  return per_token * token_rate(t, job);
}

std::vector<std::pair<std::string, double>> parts_of(const StepTime& t) {
  return {{"GEMMs", t.gemms},
          {"attention", t.attention},
          {"head", t.head},
          {"element-wise", t.elementwise},
          {"recomputation", t.recomputed},
          {"tensor transfers", t.tensor},
          {"context transfers", t.context},
          {"expert transfers", t.experts},
          {"sums and casts of weights", t.passes},
          {"kernel starts", t.launches},
          {"unequal stages", t.imbalance},
          {"pipeline bubble", t.bubble},
          {"pipeline transfers", t.transfers},
          {"optimizer", t.optimizer},
          {"data transfers", t.data}};
}

}  // namespace octet::plan
