#include "octet/train/step/preferences.hpp"

#include <algorithm>
#include <cmath>

#include "octet/train/step/own_batches.hpp"

namespace octet::train {

telemetry::PreferenceFigures figures_of(std::span<const double> sums, std::int64_t pairs) {
  if (sums.empty()) return {};
  const auto mean = [&](ops::PreferenceSum s) { return sums[std::size_t(s)] / double(std::max<std::int64_t>(pairs, 1)); };
  return {.chosen_reward = mean(ops::chosen_rewards),
          .rejected_reward = mean(ops::rejected_rewards),
          .accuracy = mean(ops::chosen_preferred),
          .chosen_log_probability = mean(ops::chosen_log_probabilities),
          .rejected_log_probability = mean(ops::rejected_log_probabilities)};
}

std::vector<double> doubles_of(Stream& stream, const Tensor& t) {
  if (!t || stream.device() == Device::null) return {};
  const HostCopy copy(stream, t);
  return {copy.as<double>(), copy.as<double>() + t.count()};
}

PairReferences::PairReferences(std::int64_t pairs, const data::Checksum& datasets)
    : values_(std::size_t(2 * pairs), 0.0), datasets_(datasets) {}

void PairReferences::fill(data::Batch& batch) const {
  if (!used()) return;
  for (std::size_t i = 0; i < batch.pairs.numbers.size(); ++i)
    if (const std::int64_t number = batch.pairs.numbers[i]; number >= 0)
      std::copy_n(values_.begin() + 2 * number, 2, batch.pairs.references.begin() + 2 * std::ptrdiff_t(i));
}

namespace {

// Of the answers of a batch. Other stages of a pipeline have no head, and add zeros.
std::vector<double> log_probabilities(Engine& e, const data::Batch& batch) {
  const Scope step(e.stream, Lifetime::step);
  nn::LossSums sums = e.new_loss_sums(Lifetime::step);
  sums.log_probabilities = e.stream.zeros({batch.rows * batch.pairs.per_row, 2}, DType::f64, Lifetime::step);
  e.pipeline.loss(batch, {}, sums);
  e.axes.pipeline().all_reduce(e.stream, sums.log_probabilities, comm::Reduction::sum);
  e.axes.pipeline().finish(e.stream);
  return doubles_of(e.stream, sums.log_probabilities);
}

}  // namespace

void PairReferences::reserve(Engine& e, const data::Batch& shape) { log_probabilities(e, shape); }

void PairReferences::add(Engine& e, const data::Batch& batch) {
  const std::vector<double> found = log_probabilities(e, batch);
  for (std::size_t i = 0; i < batch.pairs.numbers.size(); ++i)
    if (const std::int64_t number = batch.pairs.numbers[i]; number >= 0)
      std::copy_n(found.begin() + 2 * std::ptrdiff_t(i), 2, values_.begin() + 2 * number);
}

// Each rank has computed some, and has 0 for the others. In pieces, through little memory of the device.
void PairReferences::sum_over_ranks(Engine& e) {
  constexpr std::size_t piece = std::size_t(1) << 15;
  for (std::size_t begin = 0; e.ranks().size() > 1 && begin < values_.size(); begin += piece) {
    const Scope scope(e.stream);
    const std::size_t n = std::min(piece, values_.size() - begin);
    const Tensor all = e.stream.empty({std::int64_t(n)}, DType::f64);
    octet::upload(e.stream, values_.data() + begin, all);
    e.ranks().all_reduce(e.stream, all, comm::Reduction::sum);
    e.ranks().finish(e.stream);
    std::ranges::copy(doubles_of(e.stream, all), values_.begin() + std::ptrdiff_t(begin));
  }
}

bool PairReferences::compute(Engine& e, std::span<const data::EvalBatches> texts, bool (*stopped)()) {
  std::ranges::fill(values_, 0.0);
  for (const data::EvalBatches& batches : texts) {
    const bool whole = each_own_batch(e, batches, stopped, [&](data::Batch batch, bool own) {
      if (!own) std::ranges::fill(batch.pairs.numbers, -1);
      add(e, batch);
    });
    if (!whole) return false;
  }
  sum_over_ranks(e);
  const auto bad = std::ranges::find_if_not(values_, [](double x) { return std::isfinite(x); });
  if (bad == values_.end()) return true;
  throw DataError(
      format("dpo.beta: the reference's log-probability of pair {} is not finite: the weights are damaged, or of another scale than the "
             "recipe takes; fetch the model again, or set recipe.name = \"bf16\"",
             (bad - values_.begin()) / 2));
}

void PairReferences::visit_state(StateVisitor& v) {
  std::vector<double> values = values_;
  auto low = std::int64_t(datasets_.low), high = std::int64_t(datasets_.high);
  v.state("datasets_low", low), v.state("datasets_high", high), v.state("log_probabilities", values);
  if (!v.restoring()) return;
  if (data::Checksum{std::uint64_t(low), std::uint64_t(high)} != datasets_ || values.size() != values_.size())
    throw DataError(
        "dpo.beta: the run has reference log-probabilities of other pairs than data.path, data.mix and data.eval_path have now; name the "
        "datasets that it began with, or start a new run without --resume");
  values_ = std::move(values);
}

}  // namespace octet::train
