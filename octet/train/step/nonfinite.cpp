#include "octet/train/step/nonfinite.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "octet/ops/sum_of_squares/sum_of_squares.hpp"
#include "octet/nn/norm.hpp"
#include "octet/parallel/host_values.hpp"
#include "octet/train/step/evaluate.hpp"

namespace octet::train {
namespace {

bool all_finite(Stream& stream, const Tensor& on_device) {
  const HostCopy copy(stream, on_device);
  const Tensor& t = copy.tensor();
  const std::int64_t n = t.count();
  for (std::int64_t i = 0; i < n; ++i)
    if (!std::isfinite(value_at(t, i))) return false;
  return true;
}

// The number of the first such variable, in one pass on the device: a sum of squares in FP64 is finite just where every value is.
std::optional<std::size_t> nonfinite_variable(Stream& stream, const std::vector<Stored>& variables) {
  if (variables.empty()) return {};
  const Scope scope(stream);
  const Tensor each = stream.empty({std::int64_t(variables.size())}, DType::f64), total = stream.empty({1}, DType::f64);
  ops::sum_of_squares(stream, {.x = variables, .sums = each, .total = total});
  if (std::isfinite(read<double>(stream, total))) return {};
  const HostCopy squares(stream, each);
  for (std::size_t i = 0; i < variables.size(); ++i)
    if (!std::isfinite(squares.as<double>()[i])) return i;
  return {};
}

// The first name that a rank has found, where ranks divide the state: all of them then continue alike.
std::string found_by_any(Engine& e, const std::string& own) {
  const std::vector<std::string> all = parallel::gathered(e.stream, e.sharding.state_ranks(), own);
  const auto found = std::ranges::find_if(all, [](const std::string& path) { return !path.empty(); });
  return found == all.end() ? "" : *found;
}

// The name of the first such moment in the state; "" when all are finite.
std::string nonfinite_moment(Engine& e) {
  if (!e.optimizer) return "";
  const std::vector<optim::Optimizer::State> states = e.optimizer->states();
  std::vector<Stored> moments;
  for (const optim::Optimizer::State& s : states) moments.push_back(s.stored);
  const auto found = nonfinite_variable(e.stream, moments);
  return found_by_any(e, found ? states[*found].name : "");
}

class Finder final : public Observer {
 public:
  explicit Finder(Stream& stream) : stream_(stream) {}
  void observe(std::string_view path, std::string_view what, const Tensor& t) override {
    if (what == nn::row_factor) return;  // follows from the row
    if (found.empty() && t && !all_finite(stream_, t)) found = format("{}.{}", path, what);
  }
  std::string found;

 private:
  Stream& stream_;
};

// Forward and backward once more, watched. Their weights are refreshed.
std::string found_again(Engine& e, std::span<const data::Batch> micro_batches, const scaling::Pass& silent) {
  e.parameters.clear_gradients(e.stream);
  Finder finder(e.stream);
  e.stream.set_observer(&finder);
  for (const auto& batch : micro_batches) {
    e.train_one(batch, silent, tokens_of(micro_batches) * e.axes.sequence_groups());
    if (!finder.found.empty() && e.sharding.computes_alone()) break;  // others exchange the same tensors
  }
  e.stream.set_observer(nullptr);
  if (!finder.found.empty()) return finder.found;
  if (e.parameters.shard().shards(nn::Sharded::gradients)) return "";  // they share memory in turn
  const auto gradient = nonfinite_variable(e.stream, e.parameters.gradients());
  return gradient ? e.parameters.list()[*gradient]->path + ".grad" : "";
}

}  // namespace

std::string first_nonfinite(Engine& e, std::span<const data::Batch> micro_batches) {
  // No skipped step reaches the moments. One that is not finite has therefore been first, and its parameter followed.
  if (const std::string moment = nonfinite_moment(e); !moment.empty()) return moment;
  if (const std::string parameter = nonfinite_parameter(e); !parameter.empty()) return parameter;
  const scaling::Pass silent{.kind = scaling::Pass::Kind::recompute, .keep = Lifetime::micro_batch};
  e.quantize_weights(silent);
  const std::string found = found_again(e, micro_batches, silent);
  e.parameters.mark_changed();  // so that the next step measures weights, and they take their new scales
  return found;
}

namespace {

class NormFinder final : public Observer {
 public:
  explicit NormFinder(Stream& stream) : stream_(stream) {}
  void observe(std::string_view path, std::string_view what, const Tensor& t) override {
    if (!found.empty() || what != nn::row_factor || !t) return;
    const HostCopy copy(stream_, t);
    for (std::int64_t i = 0; i < t.count() && found.empty(); ++i)
      if (const float factor = copy.as<float>()[i]; !std::isfinite(factor) || factor == 0) found = path;
  }
  std::string found;

 private:
  Stream& stream_;
};

}  // namespace

std::string overflowing_norm(Engine& e, const data::Batch& batch) {
  NormFinder finder(e.stream);
  e.stream.set_observer(&finder);
  evaluate_batch(e, batch);
  e.stream.set_observer(nullptr);
  return finder.found;
}

std::string nonfinite_parameter(Engine& e) {
  std::vector<Stored> masters;
  for (const ParameterSlice& s : e.parameters.slices()) masters.push_back(s.value);
  const auto at = nonfinite_variable(e.stream, masters);
  return found_by_any(e, at ? e.parameters.list()[*at]->path : "");
}

}  // namespace octet::train
