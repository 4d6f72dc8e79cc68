#include "octet/train/step/evaluate.hpp"

#include <algorithm>
#include <numeric>

#include "octet/parallel/host_values.hpp"
#include "octet/train/step/step.hpp"

namespace octet::train {
namespace {

Evaluation run(Engine& e, const data::Batch& batch, const scaling::Pass& pass) {
  const Scope step(e.stream, Lifetime::step);
  const nn::LossSums sums{e.stream.zeros({1}, DType::f64, Lifetime::step), e.stream.zeros({1}, DType::i64, Lifetime::step)};
  e.pipeline.loss(batch, pass, sums);
  for (const Tensor& t : {sums.sum, sums.counted}) e.axes.pipeline().all_reduce(e.stream, t, comm::Reduction::sum);
  e.axes.pipeline().finish(e.stream);
  if (e.stream.device() == Device::null) return {};
  return {read<double>(e.stream, sums.sum), read<std::int64_t>(e.stream, sums.counted)};
}

}  // namespace

Evaluation evaluate_batch(Engine& e, const data::Batch& batch) {
  Evaluation out = run(e, batch, {});
  out.loss /= double(std::max<std::int64_t>(out.tokens, 1));
  return out;
}

Evaluation evaluate(Engine& e, const data::EvalBatches& batches, bool (*stopped)()) {
  Evaluation total;
  const auto group = std::uint64_t(e.axes.sequence_group()), groups = std::uint64_t(e.axes.sequence_groups());
  for (std::uint64_t first = 0; first < batches.size(); first += groups) {
    if (stopped != nullptr && stopped()) return {.whole = false};
    const std::uint64_t i = first + group;
    if (i >= batches.size()) {
      if (e.sharding.data_ranks_meet()) run(e, batches[first], {});
      break;
    }
    const Evaluation part = run(e, batches[i], {});
    total.loss += part.loss, total.tokens += part.tokens;
  }
  const std::vector<double> losses = parallel::gathered(e.stream, e.ranks(), std::span(&total.loss, 1));
  total.loss = std::accumulate(losses.begin(), losses.end(), 0.0);
  total.tokens = parallel::total(e.stream, e.ranks(), total.tokens);
  total.loss /= double(std::max<std::int64_t>(total.tokens, 1));
  return total;
}

namespace {

// Raises `seen` to the maxima of the last pass, and these to `seen`.
void keep_largest(Stream& stream, const Tensor& amax, std::vector<float>& seen) {
  {
    const HostCopy copy(stream, amax);
    seen.resize(std::size_t(amax.count()));
    for (std::size_t i = 0; i < seen.size(); ++i)
      if (const float last = copy.as<float>()[i]; !(seen[i] >= last)) seen[i] = last;
  }
  upload(stream, seen.data(), amax);
}

}  // namespace

std::vector<float> calibrate(Engine& e, const data::EvalBatches& batches, std::uint64_t count) {
  const Tensor apply = e.stream.zeros({1}, DType::f32, Lifetime::run, Category::quantizer_state);
  const scaling::Pass recording{.kind = scaling::Pass::Kind::train};
  std::vector<float> seen;
  for (std::uint64_t i = 0; i < std::min(count, batches.size()); ++i) {
    e.quantize_weights(recording);
    run(e, batches[i], recording);
    if (e.precision.slots().amax()) keep_largest(e.stream, e.precision.slots().amax(), seen);
    e.precision.end_step(e.stream, apply);
    e.parameters.mark_changed();  // so that the weights take their new scales
  }
  return seen;
}

}  // namespace octet::train
