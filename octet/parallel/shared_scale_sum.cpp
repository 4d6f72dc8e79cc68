#include "octet/parallel/shared_scale_sum.hpp"

#include "octet/ops/stored_sum/stored_sum.hpp"

namespace octet::parallel {
namespace {

ops::MuGrowth growth_of(SumRoom room) {
  switch (room) {
    case SumRoom::adapted_at_zero: return ops::MuGrowth::at_zero;
    case SumRoom::adapted_below: return ops::MuGrowth::below_threshold;
    default: return ops::MuGrowth::never;
  }
}

Stored codes_of(const Tensor& codes, const Tensor& scales) { return {.codes = codes, .scales = scales, .storage = Storage::e4m3_tensor}; }

std::vector<SummedTensor> whole_tensors(const std::vector<std::int64_t>& values) {
  std::vector<SummedTensor> out;
  for (const std::int64_t n : values) out.push_back({n, n});
  return out;
}

void join(Stream& stream, comm::Communicator& ranks, const Tensor& x, comm::Reduction reduction) {
  if (ranks.size() > 1) ranks.all_reduce(stream, x, reduction);
}

}  // namespace

SharedScaleSum::SharedScaleSum(Stream& stream, int ranks, const std::vector<std::int64_t>& values, SumRoom room)
    : SharedScaleSum(stream, ranks, whole_tensors(values), room, {alone_, alone_}) {}

SharedScaleSum::SharedScaleSum(Stream& stream, int ranks, std::vector<SummedTensor> tensors, SumRoom room, const ScaleSharers& sharers)
    : ranks_(ranks), tensors_(std::move(tensors)), sharers_(sharers), growth_(growth_of(room)) {
  const std::int64_t n = std::int64_t(tensors_.size());
  const auto table = [&](Shape shape, DType dtype) { return stream.zeros(shape, dtype, Lifetime::run, Category::quantizer_state); };
  mu_ = table({n}, DType::f32), amax_ = table({n}, DType::f32), scales_ = table({n, 2}, DType::f32), unit_ = table({2}, DType::f32);
  overflow_ = table({n, 2}, DType::i64), underflow_ = table({n, 2}, DType::i64);
  const std::vector<float> first(tensors_.size(), room == SumRoom::prescaled ? 1.0f / float(ranks) : 1.0f);
  upload(stream, first.data(), mu_);
  std::vector<std::int64_t> most;  // 0.001% of the values that are counted
  for (const SummedTensor& t : tensors_) most.push_back(counted(t) / 100'000);
  limits_ = table({n}, DType::i64);
  upload(stream, most.data(), limits_);
  const float unit[2] = {1, 0};
  upload(stream, unit, unit_);
}

void SharedScaleSum::all_reduce(Stream& stream, comm::Communicator& comm, std::span<const Tensor> x) {
  check(x.size() == tensors_.size(), "shared_scale_sum: wants {} tensors, got {}", tensors_.size(), x.size());
  for (std::size_t t = 0; t < x.size(); ++t)
    check(x[t].count() == tensors_[t].values, "shared_scale_sum: tensor {} must have {} values, got {}", t, tensors_[t].values, x[t].shape);
  ops::tensor_maxima(stream, x, amax_);
  comm.all_reduce(stream, amax_, comm::Reduction::max);
  join(stream, sharers_.parts, amax_, comm::Reduction::max);
  ops::common_scales(stream, amax_, mu_, scales_);
  clear(stream, overflow_), clear(stream, underflow_);
  for (std::size_t t = 0; t < x.size(); ++t) {
    if (scales(t)) reduce_tensor(stream, comm, t, x[t].reshaped({tensors_[t].values}));
    else comm.all_reduce(stream, x[t], comm::Reduction::sum);
  }
  for (const Tensor& counts : {overflow_, underflow_}) {
    comm.all_reduce(stream, counts, comm::Reduction::sum);
    join(stream, sharers_.parts, counts, comm::Reduction::sum);
  }
  if (sharers_.other_sums.size() == 1) advance(stream);
}

void SharedScaleSum::join_other_sums(Stream& stream) {
  if (sharers_.other_sums.size() == 1) return;
  for (const Tensor& counts : {overflow_, underflow_}) sharers_.other_sums.all_reduce(stream, counts, comm::Reduction::sum);
  advance(stream);
}

void SharedScaleSum::advance(Stream& stream) {
  ops::advance_mu(stream, {.mu = mu_, .counts = overflow_, .limits = limits_, .growth = growth_});
}

// Values of which several ranks have copies are counted on each.
std::int64_t SharedScaleSum::counted(const SummedTensor& t) const { return t.values * sharers_.parts.size() * sharers_.other_sums.size(); }

void SharedScaleSum::reduce_tensor(Stream& stream, comm::Communicator& comm, std::size_t t, const Tensor& x) {
  const auto row = [&](const Tensor& table) { return table.rows(std::int64_t(t), 1).reshaped({2}); };
  const std::int64_t share = round_up(ceil_div(x.count(), std::int64_t(comm.size())), storage_block), padded = share * comm.size();
  const Scope scope(stream);
  const auto empty = [&] { return stream.empty({padded}, DType::e4m3, Lifetime::scratch, Category::workspace); };
  const Tensor codes = empty(), parts = empty(), own = codes.rows(comm.rank() * share, share);
  const Stored values = Stored::plain(x), sent = codes_of(codes.rows(0, x.count()), row(scales_));
  clear(stream, codes);
  ops::stored_sum(stream, {.parts = values, .sum = sent, .counts = row(underflow_)});
  comm.all_to_all(stream, codes, parts);
  ops::stored_sum(stream, {.parts = codes_of(parts, unit_), .sum = codes_of(own, unit_), .counts = row(overflow_)});
  comm.all_gather(stream, own, codes);
  ops::stored_sum(stream, {.parts = sent, .sum = values});
}

std::vector<ScaleUse> SharedScaleSum::uses(Stream& stream) const {
  const HostCopy mu(stream, mu_), overflow(stream, overflow_), underflow(stream, underflow_);
  std::vector<ScaleUse> out;
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    if (!scales(t)) continue;
    const double count = double(counted(tensors_[t]));
    out.push_back({.mu = mu.as<float>()[t],
                   .overflow = double(overflow.as<std::int64_t>()[2 * t]) / count,
                   .underflow = double(underflow.as<std::int64_t>()[2 * t + 1]) / count / ranks_});
  }
  return out;
}

}  // namespace octet::parallel
