#include "octet/parallel/sharded_weights.hpp"

#include <algorithm>

#include "octet/ops/stored/stored.hpp"
#include "octet/ops/stored_sum/stored_sum.hpp"
#include "octet/parallel/host_values.hpp"

namespace octet::parallel {
namespace {

// Descales are equal on all ranks, since they follow from equal maxima.
void share_maxima(Stream& stream, comm::Communicator& ranks, const Tensor& scalars) {
  if (scalars) ranks.all_reduce(stream, scalars.reshaped({scalars.count()}), comm::Reduction::max);
}

// Whether it has copies that are values.
bool has_values(const nn::Bucket& b) { return !b.codes && b.shard.shards(nn::Sharded::masters); }

}  // namespace

ShardedWeights::ShardedWeights(Stream& stream, Stream* side, const Sharers& ranks, nn::Parameters& parameters,
                               const std::vector<nn::FrozenBucket>& frozen, nn::Partition& partition)
    : ranks_(ranks), parameters_(parameters), frozen_(frozen), codes_(stream, ranks, parameters, partition), gathers_(side) {
  if (!shards_masters()) return;
  for (const nn::FrozenBucket& b : frozen_) blocks_ = std::max(blocks_, b.block() + 1);
  for (const nn::Bucket& b : parameters.buckets()) {
    blocks_ = std::max(blocks_, b.block + 1);
    if (b.shard.shards(nn::Sharded::masters)) reserve_gather(stream, ranks.owners_of(b), b.count / ranks.owners_of(b).size());
  }
}

void ShardedWeights::publish(Stream& stream, std::span<const Tensor> scalars) {
  if (!shards_masters()) return;
  for (const Tensor& t : scalars) share_maxima(stream, ranks_.owners, t);
  for (const Tensor& t : parameters_.master_scalars()) share_maxima(stream, ranks_.owners, t);
  for (const nn::Bucket& b : parameters_.buckets())
    if (has_values(b) && !b.master_is_copy()) copy_own_part(stream, b);
  gather_copies(stream);
}

void ShardedWeights::gather_copies(Stream& stream) {
  for (const nn::Bucket& b : parameters_.buckets())
    if (has_values(b) && !b.in_turn) gather(stream, b);
  parameters_.mark_changed();
  gathers_.forget();
}

bool ShardedWeights::reads_master(const ParameterSlice& s) const {
  for (const nn::Bucket& b : parameters_.buckets())
    if (std::ranges::find(b.parameters, s.parameter) != b.parameters.end())
      return !b.shard.shards(nn::Sharded::masters) || b.master_is_copy();
  return false;
}

void ShardedWeights::publish_instead(Stream& stream, std::span<const Tensor> values) {
  if (!shards_masters()) return;
  for (const nn::Bucket& b : parameters_.buckets()) {
    if (!has_values(b) || b.master_is_copy()) continue;
    const std::int64_t begin = b.shard.own_masters(b.count).first;
    for (std::size_t i = 0; i < b.parameters.size(); ++i) {
      const auto at = std::ranges::find(parameters_.list(), b.parameters[i]) - parameters_.list().begin();
      const Tensor& x = values[std::size_t(at)];
      if (x.count() == 0) continue;
      const Tensor to = b.copies_part.rows(b.first[i] + nn::slice_of(b, i).first - begin, x.count());
      ops::stored_sum(stream, {.parts = Stored::plain(x.reshaped({x.count()})), .sum = {.codes = to, .storage = b.copies}});
    }
  }
  gather_copies(stream);
}

void ShardedWeights::encode(Stream& stream, const scaling::Pass& pass) {
  if (!codes_.encode(stream, pass)) return;
  for (const nn::Bucket& b : parameters_.buckets())
    if (b.codes && !b.in_turn) gather(stream, b);
  gathers_.forget();
}

void ShardedWeights::gather(Stream& stream, const nn::Bucket& b) { ranks_.owners_of(b).all_gather(stream, b.copies_part, b.all_copies()); }

void ShardedWeights::open(Stream& stream, int block, Needed needed) {
  if (!in_turn()) return;
  if (gathered_ != needed) gathers_.forget();
  gathered_ = needed;
  gathers_.open(stream, block, blocks_, [&](Stream& queue, int which) { gather_block(queue, which, needed); });
}

// Weights that do not train are quantized once.
void ShardedWeights::gather_block(Stream& stream, int block, Needed needed) {
  for (const nn::Bucket& b : parameters_.buckets())
    if (b.in_turn && b.block == block && (needed == Needed::all || !b.codes)) gather(stream, b);
  for (const nn::FrozenBucket& b : frozen_)
    if (b.block() == block && needed == Needed::all) ranks_.owners_of(b).all_gather(stream, b.part(), b.all());
}

// The nearest values in the copies' type. Masters with a scale per tensor are decoded slice by slice.
void ShardedWeights::copy_own_part(Stream& stream, const nn::Bucket& b) {
  const auto [begin, part] = b.shard.own_masters(b.count);
  const Stored own{.codes = b.copies_part, .storage = b.copies};
  Stored master = b.master;
  if (master.storage == Storage::bf16_nearest) master.storage = Storage::bf16;  // whose codes mean the same
  if (!scales_tensor(b.values)) return ops::stored_sum(stream, {.parts = master, .sum = own});
  const Scope scope(stream);
  const Tensor values = stream.zeros({part}, DType::f32, Lifetime::scratch, Category::workspace);
  for (std::size_t i = 0; i < b.parameters.size(); ++i) {
    const ParameterSlice slice = nn::slice_of(b, i);
    if (slice.value.count() == 0) continue;
    const std::int64_t at = b.first[i] + slice.first - begin;
    ops::decode_stored(stream, slice.value, values.rows(at, slice.value.count()));
  }
  ops::stored_sum(stream, {.parts = Stored::plain(values), .sum = own});
}

std::vector<float> ShardedWeights::own_values(Stream& stream, const nn::Bucket& b) const {
  const auto [begin, part] = b.shard.own_masters(b.count);
  std::vector<float> out(std::size_t(part), 0.0f);
  for (std::size_t i = 0; i < b.parameters.size(); ++i) {
    const ParameterSlice slice = nn::slice_of(b, i);
    if (slice.value.count() > 0) nn::get_values(stream, slice.value, out.data() + b.first[i] + slice.first - begin);
  }
  return out;
}

void ShardedWeights::get_values(Stream& stream, const nn::Bucket& b, float* host) {
  gather_parts(stream, ranks_.owners_of(b), own_values(stream, b), host);
}

}  // namespace octet::parallel
