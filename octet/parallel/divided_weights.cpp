#include "octet/parallel/divided_weights.hpp"

#include "octet/ops/stored/stored.hpp"
#include "octet/ops/stored_sum/stored_sum.hpp"

namespace octet::parallel {
namespace {

// Descales are equal on all ranks, since they follow from equal maxima.
void share_maxima(Stream& stream, comm::Communicator& ranks, const Tensor& scalars) {
  if (scalars) ranks.all_reduce(stream, scalars.reshaped({scalars.count()}), comm::Reduction::max);
}

}  // namespace

void DividedWeights::publish(Stream& stream, std::span<const Tensor> scalars) {
  for (const Tensor& t : scalars) share_maxima(stream, ranks_, t);
  for (const Tensor& t : parameters_.master_scalars()) share_maxima(stream, ranks_, t);
  for (const nn::Bucket& b : parameters_.buckets()) {
    if (!b.master_is_copy()) copy_own_part(stream, b);
    if (!b.value_part) gather(stream, b);
  }
  for (Parameter* p : parameters_.list()) ++p->version;
}

void DividedWeights::gather(Stream& stream, const nn::Bucket& b) {
  ranks_.all_gather(stream, parameters_.copy_part(b).codes, b.value.codes);
}

void DividedWeights::open(Stream& stream, int block) {
  for (const nn::Bucket& b : parameters_.buckets())
    if (b.value_part && b.block == block) gather(stream, b);
}

// The nearest values in the copies' type. Masters with a scale per tensor are decoded slice by slice.
void DividedWeights::copy_own_part(Stream& stream, const nn::Bucket& b) {
  const std::int64_t part = b.count / ranks_.size(), begin = ranks_.rank() * part;
  const Stored own = parameters_.copy_part(b);
  if (!scales_tensor(b.values)) return ops::stored_sum(stream, {.parts = b.master, .sum = own});
  const Scope scope(stream);
  const Tensor values = stream.zeros({part}, DType::f32, Lifetime::scratch, Category::workspace);
  for (std::size_t i = 0; i < b.parameters.size(); ++i) {
    const ParameterSlice slice = nn::slice_of(b, i, parameters_.share());
    if (slice.value.count() == 0) continue;
    const std::int64_t at = b.first[i] + slice.first - begin;
    ops::decode_stored(stream, slice.value, values.rows(at, slice.value.count()));
  }
  ops::stored_sum(stream, {.parts = Stored::plain(values), .sum = own});
}

}  // namespace octet::parallel
