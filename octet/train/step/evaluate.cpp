#include "octet/train/step/evaluate.hpp"

#include <algorithm>
#include <numeric>

#include "octet/parallel/host_values.hpp"
#include "octet/train/step/own_batches.hpp"
#include "octet/train/step/step.hpp"

namespace octet::train {
namespace {

// Sums of a batch, or of many.
struct Sums {
  std::vector<double> values{0};  // of the loss, then those of pairs
  std::int64_t counted = 0;

  void add(const Sums& more) {
    values.resize(std::max(values.size(), more.values.size()));
    for (std::size_t i = 0; i < more.values.size(); ++i) values[i] += more.values[i];
    counted += more.counted;
  }
  Evaluation means() const {
    return {.loss = values[0] / double(std::max<std::int64_t>(counted, 1)),
            .tokens = counted,
            .preferences = figures_of(std::span(values).subspan(1), counted)};
  }
};

Sums run(Engine& e, const data::Batch& batch, const scaling::Pass& pass) {
  const Scope step(e.stream, Lifetime::step);
  const nn::LossSums sums = e.new_loss_sums(Lifetime::step);
  e.pipeline.loss(batch, pass, sums);
  for (const Tensor& t : {sums.sum, sums.counted, sums.preferences})
    if (t) e.axes.pipeline().all_reduce(e.stream, t, comm::Reduction::sum);
  e.axes.pipeline().finish(e.stream);
  if (e.stream.device() == Device::null) return {};
  Sums out{.values = {octet::read<double>(e.stream, sums.sum)}, .counted = octet::read<std::int64_t>(e.stream, sums.counted)};
  for (const double x : doubles_of(e.stream, sums.preferences)) out.values.push_back(x);
  return out;
}

}  // namespace

Evaluation evaluate_batch(Engine& e, const data::Batch& batch) { return run(e, batch, {}).means(); }

Evaluation evaluate(Engine& e, const data::EvalBatches& batches, bool (*stopped)(), const PairReferences& references) {
  Sums total;
  const bool whole = each_own_batch(e, batches, stopped, [&](data::Batch batch, bool own) {
    references.fill(batch);
    const Sums sums = run(e, batch, {});
    if (own) total.add(sums);
  });
  if (!whole) return {.whole = false};
  if (e.objective->of_pairs()) total.values.resize(1 + ops::preference_sums);  // of a rank without a batch
  const std::vector<double> values = parallel::gathered(e.stream, e.ranks(), std::span<const double>(total.values));
  std::vector<double> sums(total.values.size());
  for (std::size_t i = 0; i < values.size(); ++i) sums[i % sums.size()] += values[i];
  total.values = sums;
  total.counted = parallel::total(e.stream, e.ranks(), total.counted);
  return total.means();
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
