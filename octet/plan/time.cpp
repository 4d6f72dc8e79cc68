#include "octet/plan/time.hpp"

#include <algorithm>
#include <cmath>

#include "octet/parallel/expert_group.hpp"
#include "octet/plan/layer_work.hpp"
#include "octet/plan/memory.hpp"

namespace octet::plan {
namespace {

double share(std::int64_t ranks) { return double(ranks - 1) / double(ranks); }

// Bytes per second of exchanges of tensors of so many bytes among tensor ranks.
double tensor_rate(const Job& job, const Layout& l, double bytes) {
  return job.network().ring({1, l.tensor}) * bytes / (bytes + 1e6 * job.machine.link_ramp_mb);
}

// Of one exchange in a ring.
double latency(const Job& job, std::int64_t ranks) { return double(ranks - 1) * job.machine.hop_microseconds / 1e6; }

// Rows that leave a GPU per token on the way to experts: to others of its node, and to other nodes by its own card.
struct LeavingRows {
  double inside = 0, outside = 0;
  double all() const { return inside + outside; }
};

// A row goes once to each GPU with one of its experts; once to each node, where one of its GPUs passes it on; or once per choice.
LeavingRows rows_per_token(const PlannedModel& m, const Layout& l, const Job& job, const Software& s) {
  if (l.experts == 1) return {};
  const std::int64_t members = std::clamp<std::int64_t>(job.per_node() / l.tensor, 1, l.experts), nodes = l.experts / members;
  const auto chance = [&](std::int64_t ranks) {
    return parallel::visit_chance(m.experts.per_token, m.experts.count, m.experts.count / ranks);
  };
  if (s.row_per_choice) {
    const double each = double(m.experts.per_token) / double(l.experts);
    return {.inside = double(members - 1) * each, .outside = double(l.experts - members) * each};
  }
  const double to_each = chance(l.experts);
  return {.inside = double(s.once_per_node ? nodes * members - nodes : members - 1) * to_each,
          .outside = s.once_per_node ? double(nodes - 1) * chance(nodes) : double(l.experts - members) * to_each};
}

// Seconds of exchanges of `bytes` per GPU among expert ranks, of which links of the node carry a part at the same time.
double exchange_seconds(const Job& job, const Layout& l, const Software& s, double bytes, const LeavingRows& rows) {
  const double inside = bytes * rows.inside / rows.all(), outside = bytes - inside;
  const Network network = job.network();
  return std::max(inside / network.links(), outside / network.exchange({l.tensor, l.experts}, s.once_per_node));
}

// The layers on a GPU of the stage that has most: blocks, layers that predict further tokens, and the parameters of all of these.
struct Load {
  double blocks = 0, ahead = 0;
  double dense = 0, routed = 0;  // besides stacks of experts, and of these
  double copied = 0;             // of both, those of which tensor ranks have copies, unless other programs divide them
  double ends = 0;               // of embedding and head

  double layers() const { return blocks + ahead; }
  double parameters() const { return dense + routed; }
};

void add_layers(Load& to, const PlannedModel& m, const Layout& l, const Software& s, double layers) {
  const double routed = m.routed_parameters() / double(l.experts);
  to.dense += layers * rank_parameters(m, l, s), to.routed += layers * routed;
  if (s.copies_experts) to.copied += layers * (routed + m.shared_parameters());
}

std::int64_t blocks_beside_head(const std::vector<std::int64_t>& stages, const Layout& l) {
  return folds(l.schedule) ? stages.front() : stages.back();
}

Load most_loaded(const PlannedModel& m, const Layout& l, const Job& job, const Software& s) {
  const std::vector<std::int64_t> stages = layers_of_stages(m, l, job);
  const std::int64_t most = std::ranges::max(stages), beside_head = blocks_beside_head(stages, l);
  const bool at_head = m.ahead() > 0 && beside_head + m.ahead() >= most;
  Load out{.blocks = double(at_head ? beside_head : most), .ahead = at_head ? double(m.ahead()) : 0};
  add_layers(out, m, l, s, out.blocks);
  out.ends = m.end_parameters() / double(l.tensor);
  if (!at_head) return out;
  add_layers(out, m.layer_ahead(), l, s, out.ahead);
  const double joining = out.ahead * m.joining_parameters();
  out.dense += joining;
  if (s.copies_experts) out.copied += joining;
  if (has_second_embedding(m, l)) out.ends *= 2;
  return out;
}

// Sums of copies' gradients among tensor ranks, once per step, or per micro-batch as values where stages 2 and 3 divide the sums.
double bytes_of_tensor_copies(const Load& load, const Layout& l, const Job& job, const Software& s) {
  const bool of_micro_batches = l.zero >= 2 && l.shards() > 1;
  const double sent = of_micro_batches ? std::max(2.0, s.gradient) * double(job.micro_batches(l)) : s.gradient;
  return 2 * share(l.tensor) * sent * load.copied;
}

// Bytes that a step of the data axis sends at that stage. Stages 2 and 3 of ZeRO send in every micro-batch.
double data_bytes(const Load& load, const Layout& l, const Job& job, const Software& s) {
  const double divided = share(l.shards()), ends = load.ends;
  const double routed = load.routed * share(shards_of_stacks(l, s)) / std::max(divided, 1e-9);
  const double parameters = load.dense + routed;
  constexpr double end_gradient = 4, end_weight = 2;
  if (l.zero == 0) return divided * 2 * (s.sent_gradient * parameters + end_gradient * ends);
  const double micro_batches = double(job.micro_batches(l));
  const double gradients = s.sent_gradient * parameters * (l.zero >= 2 ? micro_batches : 1);
  const double weights = s.sent_weight * parameters * (l.zero == 3 ? 2 * micro_batches : 1);
  return divided * (gradients + weights + (end_gradient + end_weight) * ends);
}

// Of gradients' sums among the ranks that have the same part, once per step.
double bytes_of_copies(const Load& load, const Layout& l, const Software& s) {
  const double stacks = load.routed / double(shards_of_stacks(l, s));
  return 2 * share(l.same_shard()) * (s.sent_gradient * (load.dense / double(l.shards()) + stacks) + 4 * load.ends / double(l.shards()));
}

double gain_of(const machine::MachineConstants& c, const Software& s) { return s.eight_bit ? c.eight_bit_gain * s.product_rate : 1; }

// Of a micro-batch on one GPU.
double own_tokens(const Layout& l, const Job& job) {
  return double(l.micro_batch) * double(job.sequence) / (double(l.tensor) * double(l.context));
}

// Seconds of the computation of one layer, for one micro-batch on one GPU.
StepTime layer_computation(const PlannedModel& m, const Layout& l, const Job& job, const Software& s) {
  const machine::MachineConstants& c = job.machine;
  const double tokens = own_tokens(l, job);
  const double h = double(m.shape.width), q = double(m.query_columns()), k = double(m.key_columns()), f = m.active_hidden();
  const double gain = gain_of(c, s), memory_rate = c.memory_gbs * 1e9;
  StepTime t;
  t.gemms = seconds_of(dense_products(m, l, tokens * double(l.tensor)), c, gain) +
            seconds_of(expert_products(m, l, tokens, job.expert_load), c, gain);
  t.attention = attention_seconds(m, job, l, tokens) / s.attention_rate;
  const double bytes = (24 * h + 8 * (q + k) + (m.gated ? 16 : 12) * f) * (s.eight_bit ? c.eight_bit_traffic + s.encoding_traffic : 1);
  const double merged = s.merged_bytes * double(l.context - 1) * q;
  t.elementwise = (bytes + merged + job.expert_load * bytes_of_rows(m, s)) * tokens / memory_rate;
  if (l.recomputed == Recomputed::block) t.recomputed = t.gemms / 3 + t.attention / 3.5 + t.elementwise / 3;
  if (l.recomputed == Recomputed::norms) t.recomputed = (8 * h + 6 * f) * tokens / memory_rate;
  t.passes = s.passes * (rank_parameters(m, l, s) + m.routed_parameters() / double(l.experts)) / memory_rate;
  t.launches =
      (c.launch_microseconds + s.launch_microseconds + s.expert_launch_microseconds * m.expert_layers() / double(m.layers())) / 1e6;
  return t;
}

// Sums of norms that read all heads, of one layer and micro-batch: two numbers in FP32 per token, forward, backward, and again where blocks
// are recomputed.
struct NormSums {
  double count = 0, bytes = 0;  // exchanges, and bytes that a GPU sends in all of them
};
NormSums norm_sums(const PlannedModel& m, const Layout& l, const Job& job) {
  if (!m.norms_of_all_heads) return {};
  const double tokens = double(l.micro_batch) * double(job.sequence) / double(l.context);
  const double count = l.recomputed == Recomputed::block ? 3 : 2;
  return {.count = count, .bytes = count * 2 * share(l.tensor) * 2 * 4 * tokens};
}

// Bytes of one layer and micro-batch that a GPU sends on each axis within a block.
Volume layer_volume(const PlannedModel& m, const Layout& l, const Job& job, const Software& s) {
  const double tokens = double(l.micro_batch) * double(job.sequence) / double(l.context);  // of a tensor group
  const double h = double(m.shape.width), gathered = s.eight_bit ? 1.5 : 2;                // of gathers in codes and sums in BF16
  Volume out;
  const double branches = s.copies_experts ? 2 - m.expert_layers() / double(m.layers()) : 2;
  out.tensor = 4 * branches * h * gathered * share(l.tensor) * tokens;
  // K and V once forward, again backward, and their gradients.
  out.context = 6 * 2 * double(m.key_columns()) / double(l.tensor) * share(l.context) * tokens;
  // x and dy to the experts, and a sum back for both. Computed again, x goes once more.
  const double code = s.eight_bit && s.sends_codes_to_experts ? 1 : 2, again = l.recomputed == Recomputed::block ? code : 0;
  out.experts = (s.rows_to_experts * code + 2 * 2 + again) * h * tokens / double(l.tensor) * m.expert_layers() / double(m.layers()) *
                rows_per_token(m, l, job, s).all();
  return out;
}

// The exchanges of a layer among tensor ranks, forward and backward, that computation does not hide. Attention waits for sums of norms.
double exposed_tensor(const PlannedModel& m, const Layout& l, const Job& job, const Software& s) {
  const double tokens = double(l.micro_batch) * double(job.sequence) / double(l.context);
  const double all = layer_volume(m, l, job, s).tensor / tensor_rate(job, l, 2 * tokens * double(m.shape.width));
  const NormSums norms = norm_sums(m, l, job);
  const double of_norms = norms.bytes / job.network().ring({1, l.tensor}) + norms.count * 2 * latency(job, l.tensor);
  if (!s.overlaps_tensor) return all + of_norms;
  return exposed_exchanges(dense_products(m, l, tokens), job.machine, gain_of(job.machine, s), all) + of_norms;
}

// The part of the data axis that computation does not hide: that of stages 0 and 1 runs under the backward of the last micro-batch and the
// forward of the first one, that of stages 2 and 3 under all of them. Hidden transfers slow down the computation whose memory they use.
double exposed_data(const Load& load, const Layout& l, const Job& job, const Software& s, double stage_seconds) {
  const double layers = load.layers(), among_tensor_ranks = bytes_of_tensor_copies(load, l, job, s) / (job.machine.link_gbs * 1e9);
  if (l.sharers() == 1) return among_tensor_ranks;
  const double exchanges = layers * (l.zero < 2 ? 2 : double(job.micro_batches(l)) * (l.zero == 3 ? 3 : 1) + 1);
  const Network network = job.network();
  const double among_copies = bytes_of_copies(load, l, s) / network.ring({l.tensor * l.shards(), l.same_shard()});
  const double seconds = data_bytes(load, l, job, s) / network.ring({l.tensor, l.shards()}) + exchanges * latency(job, l.shards()) +
                         among_copies + layers * latency(job, l.same_shard()) + among_tensor_ranks;
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

// Of one layer, with transfers that no computation hides.
StepTime layer_time(const PlannedModel& m, const Layout& l, const Job& job, const Software& s) {
  const Volume sent = layer_volume(m, l, job, s);
  const Network network = job.network();
  StepTime layer = layer_computation(m, l, job, s);
  layer.tensor = exposed_tensor(m, l, job, s);
  // A ring hides its transfers under attention.
  const double in_ring = sent.context / network.ring({l.tensor, l.context});
  layer.context = std::max(0.1 * in_ring, in_ring - layer.attention);
  if (l.experts > 1) layer.experts = job.expert_load * exchange_seconds(job, l, s, sent.experts, rows_per_token(m, l, job, s));
  return layer;
}

constexpr double StepTime::*members_of_layers[] = {&StepTime::gemms,      &StepTime::attention, &StepTime::elementwise,
                                                   &StepTime::recomputed, &StepTime::tensor,    &StepTime::context,
                                                   &StepTime::experts,    &StepTime::passes,    &StepTime::launches};

// Of the stage with the head besides its blocks: the head once per token that is predicted, and layers that predict further ones. Each of
// these multiplies the halves of its input, for its own rows of copies, and makes them by two norms and copies of columns.
StepTime end_time(const PlannedModel& m, const Layout& l, const Job& job, const Software& s) {
  const machine::MachineConstants& c = job.machine;
  const double ahead = double(m.ahead()), tokens = own_tokens(l, job), h = double(m.shape.width);
  StepTime out;
  out.head = (1 + ahead) * (6 * m.end_parameters() * tokens / (c.head_tflops * 1e12));
  if (ahead == 0) return out;
  const StepTime block = layer_time(m.layer_ahead(), l, job, s);
  for (const auto member : members_of_layers) out.*member = ahead * block.*member;
  out.gemms += ahead * seconds_of(joining_products(m, tokens), c, gain_of(c, s));
  out.elementwise += ahead * 48 * h * tokens / (c.memory_gbs * 1e9);
  out.passes += ahead * s.passes * m.joining_parameters() / (c.memory_gbs * 1e9);
  return out;
}

// Of the embedding's gradient, which both ends of a pipeline have.
double bytes_between_ends(const PlannedModel& m, const Layout& l) {
  const bool both = l.pipeline > 1 && !folds(l.schedule) && (m.shape.tied || m.ahead() > 0);
  return both ? 4 * m.end_parameters() / double(l.tensor) : 0;
}

}  // namespace

Volume volume(const PlannedModel& m, const Layout& l, const Job& job, const Software& s) {
  const Load load = most_loaded(m, l, job, s);
  const double micro_batches = double(job.micro_batches(l));
  Volume out;
  for (const auto& [model, layers] : {std::pair(m, load.blocks), {m.layer_ahead(), load.ahead}}) {
    const Volume one = layer_volume(model, l, job, s);
    out.tensor += (one.tensor + norm_sums(model, l, job).bytes) * (layers * micro_batches);
    out.context += one.context * (layers * micro_batches), out.experts += one.experts * (layers * micro_batches);
  }
  out.tensor += bytes_of_tensor_copies(load, l, job, s);
  if (l.pipeline > 1) out.pipeline = 2 * double(l.chunks) * border_bytes(m, l, job) * micro_batches + bytes_between_ends(m, l);
  out.data = data_bytes(load, l, job, s) + bytes_of_copies(load, l, s);
  return out;
}

StepTime step_time(const PlannedModel& m, const Layout& l, const Job& job, const Software& s) {
  const StepTime layer = layer_time(m, l, job, s), end = end_time(m, l, job, s);
  const std::vector<std::int64_t> stages = layers_of_stages(m, l, job);
  const double micro_batches = double(job.micro_batches(l)), pipeline = double(l.pipeline), mean_layers = double(m.layers()) / pipeline;
  StepTime out;
  for (const auto member : members_of_layers)
    out.*member = layer.*member * mean_layers * micro_batches + end.*member / pipeline * micro_batches;
  out.head = end.head / pipeline * micro_batches;
  const double mean = out.total() / micro_batches, of_layer = (mean - end.total() / pipeline) / mean_layers;
  const double layers = double(std::ranges::max(stages));
  const double slowest = std::max(layers * of_layer, double(blocks_beside_head(stages, l)) * of_layer + end.total());
  out.imbalance = (slowest - mean) * micro_batches;
  out.bubble = mean * micro_batches * parallel::bubble_ratio(l.schedule, pipeline_shape(l, job), costs_of(out, mean, micro_batches));
  out.transfers = (2 * (pipeline - 1) * border_bytes(m, l, job) + bytes_between_ends(m, l)) /
                  job.network().stages({l.tensor * l.context * l.data, l.pipeline});
  const Load load = most_loaded(m, l, job, s);
  const double updated = load.parameters() / (l.zero > 0 ? double(l.shards()) : 1);
  out.optimizer = (2 * s.divided + s.gradient) * updated / (job.machine.memory_gbs * 1e9);
  out.data = exposed_data(load, l, job, s, slowest);
  // The largest of many normal values.
  const double nodes = std::max(1.0, double(job.gpus) / double(job.per_node()));
  out.stragglers = job.machine.node_spread * std::sqrt(2 * std::log(nodes)) * mean * micro_batches;
  return out;
}

double token_rate(const StepTime& t, const Job& job) { return job.tokens() / t.total() / double(job.gpus); }

double model_flops_rate(const StepTime& t, const PlannedModel& m, const Job& job) {
  const double scores = double(m.layers() + m.ahead()) * double(job.sequence) * m.score_columns();
  return 6 * (m.used_parameters() + scores) * token_rate(t, job);
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
          {"data transfers", t.data},
          {"slow nodes", t.stragglers}};
}

}  // namespace octet::plan
