#include "octet/parallel/coded_weights.hpp"

#include <algorithm>

#include "octet/ops/quantize/slice.hpp"

namespace octet::parallel {
namespace {

StoredSlice own_values(const nn::Bucket& b, std::size_t i, const nn::Share& share) {
  const ParameterSlice s = nn::slice_of(b, i, share);
  return {s.value, s.parameter->shape, s.first};
}

// Where the codes of these values are in the own part of the bucket.
Tensor own_codes(const nn::Bucket& b, std::size_t i, const nn::Share& share, const StoredSlice& values) {
  const std::int64_t n = values.stored.count(), begin = share.part * (b.count / share.parts), at = b.first[i] + values.first - begin;
  const Tensor bytes = b.copies_part.rows(n > 0 ? at : 0, n);
  return {bytes.data, bytes.shape, b.parameters[i]->codes.codes.dtype};
}

Shape table_of(const Quantized& codes) { return descale_shape(codes.block, DType::f32, codes.rows(), codes.cols()); }

}  // namespace

CodedWeights::CodedWeights(Stream& stream, comm::Communicator& ranks, nn::Parameters& parameters, nn::Partition& partition)
    : ranks_(ranks), parameters_(parameters), partition_(partition) {
  for (const nn::Bucket& b : parameters.buckets())
    for (std::size_t i = 0; i < b.layers.size(); ++i) weights_.push_back({b.layers[i], &b, i, {}});
  std::ranges::stable_partition(weights_, [](const Weight& w) { return w.layer->weight().codes.block.whole_tensor(); });
  bind_scales(stream);
}

void CodedWeights::bind_scales(Stream& stream) {
  std::int64_t count = 0;
  for (Weight& w : weights_) {
    Quantized& codes = w.layer->weight().codes;
    const ops::QuantizeSpec spec = w.layer->weight_spec(scaling::recomputing);
    codes.descales = spec.descale;
    if (spec.scale_known()) continue;
    codes.descales = stream.zeros(table_of(codes), DType::f32, Lifetime::run, Category::weight_operands);
    count += codes.descales.count();
    if (codes.block.whole_tensor()) of_tensors_ = count;
  }
  if (count == 0) return;
  scales_ = stream.zeros({count}, DType::f32, Lifetime::run, Category::weight_operands);
  std::int64_t begin = 0;
  for (Weight& w : weights_) {
    const Quantized& codes = w.layer->weight().codes;
    if (w.layer->weight_spec(scaling::recomputing).scale_known()) continue;
    w.scales = scales_.rows(begin, codes.descales.count()).reshaped(codes.descales.shape), begin += codes.descales.count();
  }
}

bool CodedWeights::is_stale() const {
  return std::ranges::any_of(weights_, [](const Weight& w) { return w.layer->weight().codes_version != w.layer->weight().version; });
}

bool CodedWeights::encode(Stream& stream, const scaling::Pass& pass) {
  if (!is_stale()) return false;
  if (scales_) find_scales(stream);
  for (const Weight& w : weights_) {
    const StoredSlice values = own_values(*w.bucket, w.number, parameters_.share());
    Parameter& weight = w.layer->weight();
    weight.codes_version = weight.version;
    if (values.stored.count() == 0) continue;
    ops::quantize_slice(stream, values, w.layer->weight_spec(pass), w.scales, own_codes(*w.bucket, w.number, parameters_.share(), values));
  }
  return true;
}

void CodedWeights::find_scales(Stream& stream) {
  for (const Weight& w : weights_)
    if (w.scales) ops::slice_maxima(stream, own_values(*w.bucket, w.number, parameters_.share()), w.layer->weight().codes.block, w.scales);
  ranks_.all_reduce(stream, scales_, comm::Reduction::max);
  if (of_tensors_ > 0) partition_.max(stream, scales_.rows(0, of_tensors_));
  for (const Weight& w : weights_)
    if (w.scales)
      ops::scales_of_maxima(stream, w.layer->weight_spec(scaling::recomputing),
                            own_values(*w.bucket, w.number, parameters_.share()).stored.value_type(), w.scales, w.scales,
                            w.layer->weight().codes.descales);
}

}  // namespace octet::parallel
