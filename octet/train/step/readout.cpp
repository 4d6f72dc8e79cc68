#include "octet/train/step/readout.hpp"

#include <algorithm>

#include "octet/parallel/host_values.hpp"

namespace octet::train {
namespace {

void add(ops::QuantizeHealth& sum, const ops::QuantizeHealth& h) {
  if (h.scale_max > 0) {
    sum.scale_min = sum.scale_max > 0 ? std::min(sum.scale_min, h.scale_min) : h.scale_min;
    sum.scale_max = std::max(sum.scale_max, h.scale_max);
  }
  sum.values += h.values, sum.saturated += h.saturated, sum.flushed += h.flushed, sum.nonfinite += h.nonfinite;
  sum.signal += h.signal, sum.noise += h.noise, sum.blocks.add(h.blocks);
}

// Each rank has quantized its own micro-batches.
std::vector<ops::QuantizeHealth> health_of_all(Engine& e) {
  const Scope scope(e.stream);
  const HostCopy copy(e.stream, parallel::gathered(e.stream, e.all_ranks(), e.precision.slots().health_table()));
  const auto* of_ranks = copy.as<ops::QuantizeHealth>();
  const auto n = std::size_t(e.precision.slots().size());
  std::vector<ops::QuantizeHealth> out(of_ranks, of_ranks + n);
  for (std::size_t i = n; i < n * std::size_t(e.all_ranks().size()); ++i) add(out[i % n], of_ranks[i]);
  return out;
}

}  // namespace

Readout read_out(Engine& e) {
  Readout out;
  out.step = e.optimizer->last(e.stream);
  out.loss = read<float>(e.stream, e.mean_loss());
  if (const nn::LossSums sums = e.loss_sums().of_tokens_ahead(); sums.sum)
    out.ahead_loss = read<double>(e.stream, sums.sum) / double(std::max<std::int64_t>(1, read<std::int64_t>(e.stream, sums.counted)));
  if (e.loss_scale) out.loss_scale = e.loss_scale->read(e.stream, out.step.skip);
  if (const Tensor sums = e.loss_sums().preferences)
    out.preferences = figures_of(doubles_of(e.stream, sums), read<std::int64_t>(e.stream, e.loss_sums().counted));
  const double trained = read<double>(e.stream, e.parameter_squares());  // 0 before it is first measured
  out.parameter_squares = trained > 0 ? trained + e.frozen.squares() : 0;
  const auto values = [&](const Tensor& t) { return t ? nn::flat_values(e.stream, std::vector{t}) : std::vector<float>{}; };
  out.expert_counts = values(e.model->routers().counts()), out.expert_bias = values(e.model->routers().biases());
  const scaling::SlotTable& slots = e.precision.slots();
  if (slots.size() == 0) return out;
  const HostCopy amax(e.stream, slots.amax());
  const float* of_slot = amax.as<float>();
  for (const scaling::Slot& slot : slots.slots()) {  // the largest of a stack's matrices
    out.amax.push_back(*std::max_element(of_slot, of_slot + slot.matrices));
    of_slot += slot.matrices;
  }
  out.health = health_of_all(e);
  return out;
}

}  // namespace octet::train
