#include "octet/parallel/divided_weights.hpp"

#include <algorithm>

#include "octet/ops/stored/stored.hpp"
#include "octet/ops/stored_sum/stored_sum.hpp"

namespace octet::parallel {
namespace {

// Descales are equal on all ranks, since they follow from equal maxima.
void share_maxima(Stream& stream, comm::Communicator& ranks, const Tensor& scalars) {
  if (scalars) ranks.all_reduce(stream, scalars.reshaped({scalars.count()}), comm::Reduction::max);
}

}  // namespace

DividedWeights::DividedWeights(Stream& stream, Stream* side, comm::Communicator& ranks, nn::Parameters& parameters)
    : ranks_(ranks), parameters_(parameters), codes_(stream, ranks, parameters), gathers_(side) {
  for (const nn::Bucket& b : parameters.buckets()) {
    blocks_ = std::max(blocks_, b.block + 1);
    const Scope scope(stream);
    pieces_of(stream, b);  // so that a dry run, which collects no values, includes this memory
  }
}

// Memory for a piece of a bucket: the own values, and those of all ranks.
DividedWeights::Pieces DividedWeights::pieces_of(Stream& stream, const nn::Bucket& b) const {
  const std::int64_t most = std::int64_t(1) << 20, n = std::min(b.count / ranks_.size(), std::max<std::int64_t>(most / ranks_.size(), 1));
  const Tensor own = stream.empty({n}, DType::f32);
  return {own, stream.empty({n * ranks_.size()}, DType::f32)};
}

void DividedWeights::publish(Stream& stream, std::span<const Tensor> scalars) {
  for (const Tensor& t : scalars) share_maxima(stream, ranks_, t);
  for (const Tensor& t : parameters_.master_scalars()) share_maxima(stream, ranks_, t);
  for (const nn::Bucket& b : parameters_.buckets()) {
    if (b.codes) continue;
    if (!b.master_is_copy()) copy_own_part(stream, b);
    if (!b.in_turn) gather(stream, b);
  }
  for (Parameter* p : parameters_.list()) ++p->version;
  gathers_.forget();
}

void DividedWeights::encode(Stream& stream, const scaling::Pass& pass) {
  if (!codes_.encode(stream, pass)) return;
  for (const nn::Bucket& b : parameters_.buckets())
    if (b.codes && !b.in_turn) gather(stream, b);
  gathers_.forget();
}

void DividedWeights::gather(Stream& stream, const nn::Bucket& b) { ranks_.all_gather(stream, b.copies_part, b.all_copies()); }

void DividedWeights::open(Stream& stream, int block) {
  gathers_.open(stream, block, blocks_, [this](Stream& queue, int which) {
    for (const nn::Bucket& b : parameters_.buckets())
      if (b.in_turn && b.block == which) gather(queue, b);
  });
}

// The nearest values in the copies' type. Masters with a scale per tensor are decoded slice by slice.
void DividedWeights::copy_own_part(Stream& stream, const nn::Bucket& b) {
  const std::int64_t part = b.count / ranks_.size(), begin = ranks_.rank() * part;
  const Stored own{.codes = b.copies_part, .storage = b.copies};
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

std::vector<float> DividedWeights::own_values(Stream& stream, const nn::Bucket& b) const {
  const std::int64_t part = b.count / ranks_.size(), begin = ranks_.rank() * part;
  std::vector<float> out(std::size_t(part), 0.0f);
  for (std::size_t i = 0; i < b.parameters.size(); ++i) {
    const ParameterSlice slice = nn::slice_of(b, i, parameters_.share());
    if (slice.value.count() > 0) nn::get_values(stream, slice.value, out.data() + b.first[i] + slice.first - begin);
  }
  return out;
}

void DividedWeights::get_values(Stream& stream, const nn::Bucket& b, float* host) {
  const std::int64_t part = b.count / ranks_.size(), ranks = ranks_.size();
  const std::vector<float> own = own_values(stream, b);
  std::vector<float> pieces;
  const Scope scope(stream);
  const Pieces memory = pieces_of(stream, b);
  const std::int64_t most = memory.own.count();
  for (std::int64_t at = 0; at < part; at += most) {
    const std::int64_t n = std::min(most, part - at);
    const Tensor from = memory.own.rows(0, n), all = memory.all.rows(0, n * ranks);
    upload(stream, own.data() + at, from);
    ranks_.all_gather(stream, from, all);
    ranks_.finish(stream);
    pieces.resize(std::size_t(n * ranks));
    download(stream, all, pieces.data());
    for (std::int64_t r = 0; r < ranks; ++r) std::copy_n(pieces.begin() + r * n, n, host + r * part + at);
  }
}

}  // namespace octet::parallel
