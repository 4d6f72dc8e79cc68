#include "octet/nn/frozen_bucket.hpp"

#include <algorithm>

namespace octet::nn {
namespace {

// The stack of memory for blocks of one parity; slot 0 has all else of a run.
Region in_turn(int block, bool experts) { return {Lifetime::run, 1 + block % 2 + (experts ? 2 : 0)}; }

}  // namespace

FrozenBucket::FrozenBucket(Stream& stream, int block, bool experts, const Shard& shard, const std::vector<Member>& members)
    : block_(block), experts_(experts) {
  const Region region = in_turn(block, experts);
  const Scope in_turn_of_blocks(stream, region);
  const auto top = [&] { return stream.empty({0}, DType::u8, region, Category::weight_operands).u8(); };
  std::uint8_t* const begin = top();
  for (const Member& m : members) {
    const std::int64_t from = top() - begin;
    const Scope scope(stream);
    m.weight->make_held(stream, stream.empty(m.weight->parameter().shape, m.values, Lifetime::scratch, Category::workspace), region);
    places_.push_back({m.weight, from, top() - begin});
  }
  const std::int64_t used = top() - begin, bytes = round_up(used, std::int64_t(Arena::alignment) * shard.count);
  stream.empty({bytes - used}, DType::u8, region, Category::weight_operands);
  all_ = {begin, {bytes}, DType::u8};
  own_ = {bytes / shard.count * shard.index, bytes / shard.count};
  part_ = stream.zeros({own_.count}, DType::u8, Lifetime::run, Category::weight_operands);
}

bool FrozenBucket::has(const Weight& w) const { return std::ranges::find(places_, &w, &Place::weight) != places_.end(); }

void FrozenBucket::keep(Stream& stream, const Weight& w) {
  const Place& p = *std::ranges::find(places_, &w, &Place::weight);
  const std::int64_t from = std::max(p.begin, own_.first), n = std::min(p.end, own_.first + own_.count) - from;
  if (n > 0) copy(stream, all_.rows(from, n), part_.rows(from - own_.first, n));
}

}  // namespace octet::nn
