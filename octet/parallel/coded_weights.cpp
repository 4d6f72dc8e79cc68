#include "octet/parallel/coded_weights.hpp"

#include <algorithm>

namespace octet::parallel {

CodedWeights::CodedShard CodedWeights::shard_of(const nn::Bucket& b, std::size_t i) {
  const ParameterSlice s = nn::slice_of(b, i);
  const std::int64_t n = s.value.count(), at = b.first[i] + s.first - b.shard.own_masters(b.count).first;
  const Tensor bytes = b.copies_part.rows(n > 0 ? at : 0, n);
  return {b.coded[i], {s.value, s.parameter->shape, s.first}, {bytes.data, bytes.shape, s.parameter->codes.codes.dtype}, b.experts};
}

CodedWeights::CodedWeights(Stream& stream, const Sharers& ranks, nn::Parameters& parameters, nn::Partition& partition)
    : ranks_(ranks), partition_(partition) {
  for (const nn::Bucket& b : parameters.buckets())
    for (std::size_t i = 0; i < b.coded.size(); ++i) shards_.push_back(shard_of(b, i));
  std::ranges::stable_partition(shards_, [](const CodedShard& p) { return !p.experts; });
  std::ranges::stable_partition(shards_, [](const CodedShard& p) { return p.weight->parameter().codes.block.whole_tensor(); });
  bind_scales(stream);
}

void CodedWeights::bind_scales(Stream& stream) {
  const auto zeros = [&](Shape shape) { return stream.zeros(shape, DType::f32, Lifetime::run, Category::weight_operands); };
  std::vector<CodedShard*> found;
  std::int64_t count = 0;
  for (CodedShard& p : shards_) {
    Quantized& codes = p.weight->parameter().codes;
    const ops::QuantizeSpec spec = p.weight->spec(scaling::recomputing);
    codes.descales = spec.descale;
    if (spec.scale_known()) continue;
    codes.descales = zeros(descale_shape(codes.block, DType::f32, codes.rows(), codes.cols()));
    found.push_back(&p), joined_.push_back({p.values, spec, {}, codes.descales});
    count += codes.descales.count();
    if (codes.block.whole_tensor()) of_tensors_ = count;
    if (codes.block.whole_tensor() || !p.experts) of_all_ = count;
  }
  if (count > 0) scales_ = zeros({count});
  for (std::int64_t i = 0, begin = 0; i < std::int64_t(found.size()); ++i) {
    nn::JoinedScales& j = joined_[std::size_t(i)];
    found[std::size_t(i)]->scales = j.scales = scales_.rows(begin, j.descales.count()).reshaped(j.descales.shape);
    begin += j.descales.count();
  }
}

void CodedWeights::find_scales(Stream& stream) {
  if (scales_)
    nn::find_scales(stream, joined_, [&] {
      const std::int64_t of_experts = scales_.count() - of_all_;
      if (of_all_ > 0) ranks_.owners.all_reduce(stream, scales_.rows(0, of_all_), comm::Reduction::max);
      if (of_experts > 0) ranks_.experts.all_reduce(stream, scales_.rows(of_all_, of_experts), comm::Reduction::max);
      if (of_tensors_ > 0) partition_.max(stream, scales_.rows(0, of_tensors_));
    });
}

bool CodedWeights::encode(Stream& stream, const scaling::Pass& pass) {
  const auto is_stale = [](const CodedShard& p) { return p.weight->parameter().codes_version != p.weight->parameter().version; };
  if (std::ranges::none_of(shards_, is_stale)) return false;
  find_scales(stream);
  for (const CodedShard& p : shards_) {
    Parameter& parameter = p.weight->parameter();
    parameter.codes_version = parameter.version;
    if (p.values.stored.count() > 0) ops::quantize_slice(stream, p.values, p.weight->spec(pass), p.scales, p.codes);
  }
  return true;
}

}  // namespace octet::parallel
