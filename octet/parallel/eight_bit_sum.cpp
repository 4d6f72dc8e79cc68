#include "octet/parallel/eight_bit_sum.hpp"

#include <algorithm>
#include <array>

#include "octet/ops/stored_sum/stored_sum.hpp"

namespace octet::parallel {
namespace {

constexpr std::int64_t most_chunks = 8;

// Codes for n values, a multiple of 128.
Stored coded(Stream& stream, std::int64_t n) {
  return {.codes = stream.empty({n}, DType::e4m3, Lifetime::scratch, Category::workspace),
          .scales = stream.empty({n / storage_block}, DType::e8m0, Lifetime::scratch, Category::workspace),
          .storage = Storage::e4m3};
}
// Values [begin, begin + n), where begin is a multiple of 128.
Stored part_of(const Stored& x, std::int64_t begin, std::int64_t n) {
  Stored out{.codes = x.codes.rows(begin, n), .storage = x.storage};
  if (x.scales) out.scales = x.scales.rows(begin / storage_block, ceil_div(n, storage_block));
  return out;
}
Stored flat(const Stored& x) { return {.codes = x.codes.reshaped({x.count()}), .scales = x.scales, .storage = x.storage}; }

void convert(Stream& stream, const Stored& from, const Stored& to) { ops::stored_sum(stream, {.parts = from, .sum = to}); }
void copy_codes(Stream& stream, const Stored& from, const Stored& to) {
  copy(stream, from.codes, to.codes), copy(stream, from.scales, to.scales);
}

}  // namespace

EightBitSum::EightBitSum(Stream& stream, comm::Communicator& ranks, bool overlap, std::int64_t least) : ranks_(ranks), least_(least) {
  if (overlap) side_.emplace(stream);
}

// All of them, padded, unless exchanges overlap.
std::int64_t EightBitSum::chunk_of(std::int64_t count) const {
  const std::int64_t unit = storage_block * ranks_.size(), all = round_up(count, unit);
  return side_ ? std::min(all, round_up(std::max(least_, ceil_div(count, most_chunks)), unit)) : all;
}

void EightBitSum::send(Stream& stream, const Stored& from, const Stored& to, Point& sent) {
  Stream& queue = wire(stream);
  follow(queue, stream);
  ranks_.together(queue, [&] { ranks_.all_to_all(queue, from.codes, to.codes), ranks_.all_to_all(queue, from.scales, to.scales); });
  sent.set(queue);
}

// The own share of a chunk's codes becomes that of the sums, which then goes to all ranks.
void EightBitSum::sum_share(Stream& stream, const Chunk& c) {
  Stream& queue = wire(stream);
  const Stored own = part_of(c.codes, ranks_.rank() * c.share, c.share);
  c.slot->sent.hold(stream);
  convert(stream, part_of(c.slot->parts, 0, c.codes.count()), own);
  follow(queue, stream);
  ranks_.together(queue, [&] { ranks_.all_gather(queue, own.codes, c.codes.codes), ranks_.all_gather(queue, own.scales, c.codes.scales); });
  c.slot->gathered.set(queue);
}

// encode(chunk) fills its codes, and decode(chunk) takes those of the sums. own: codes that are sent as they are where a chunk has no
// padding; or none.
template <class Encode, class Decode>
void EightBitSum::all_reduce_chunks(Stream& stream, std::int64_t count, const Stored& own, const Encode& encode, const Decode& decode) {
  const std::int64_t most = chunk_of(count), chunks = count > 0 ? ceil_div(count, most) : 1;
  const bool has_own = bool(own) && count % (storage_block * ranks_.size()) == 0;
  const Scope scope(stream);
  std::array<Slot, in_flight> slots;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(chunks, in_flight); ++i) {
    if (!has_own) slots[std::size_t(i)].codes = coded(stream, most);
    slots[std::size_t(i)].parts = coded(stream, most);
  }
  const auto chunk = [&](std::int64_t k) {
    Chunk c{.begin = k * most, .count = std::min(most, count - k * most), .slot = &slots[std::size_t(k % in_flight)]};
    const std::int64_t padded = round_up(c.count, storage_block * ranks_.size());
    c.share = padded / ranks_.size(), c.codes = has_own ? part_of(own, c.begin, padded) : part_of(c.slot->codes, 0, padded);
    return c;
  };
  for (std::int64_t k = 0; k < chunks + 2; ++k) {
    if (k < chunks) {
      const Chunk c = chunk(k);
      if (!has_own && c.count < c.codes.count()) clear(stream, c.codes.codes), clear(stream, c.codes.scales);
      if (!has_own) encode(c);
      send(stream, c.codes, part_of(c.slot->parts, 0, c.codes.count()), c.slot->sent);
    }
    if (k >= 1 && k - 1 < chunks) sum_share(stream, chunk(k - 1));
    if (k < 2) continue;
    const Chunk c = chunk(k - 2);
    c.slot->gathered.hold(stream);
    if (!has_own) decode(c);
  }
}

void EightBitSum::all_reduce(Stream& stream, const Tensor& x) {
  const Stored values = Stored::plain(x.reshaped({x.count()}));
  all_reduce_chunks(
      stream, x.count(), {}, [&](const Chunk& c) { convert(stream, part_of(values, c.begin, c.count), part_of(c.codes, 0, c.count)); },
      [&](const Chunk& c) { convert(stream, part_of(c.codes, 0, c.count), part_of(values, c.begin, c.count)); });
}

void EightBitSum::all_reduce(Stream& stream, const Stored& x) {
  check(x.storage == Storage::e4m3, "eight_bit_sum: wants codes of e4m3, got {}", name(x.storage));
  const Stored own = flat(x);
  all_reduce_chunks(
      stream, x.count(), own, [&](const Chunk& c) { copy_codes(stream, part_of(own, c.begin, c.count), part_of(c.codes, 0, c.count)); },
      [&](const Chunk& c) { copy_codes(stream, part_of(c.codes, 0, c.count), part_of(own, c.begin, c.count)); });
}

void EightBitSum::reduce_scatter(Stream& stream, const Tensor& from, const Stored& to) {
  const std::int64_t n = to.count(), ranks = ranks_.size();
  check(from.count() == n * ranks && n % storage_block == 0, "eight_bit_sum: {} must be {} times {}, a multiple of {} values", from.shape,
        ranks, to.shape(), storage_block);
  const Stored values = Stored::plain(from.reshaped({from.count()})), sums = flat(to);
  const std::int64_t most = chunk_of(from.count()) / ranks, chunks = n > 0 ? ceil_div(n, most) : 1;
  const Scope scope(stream);
  std::array<Slot, 2> slots;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(chunks, 2); ++i)
    slots[std::size_t(i)].codes = coded(stream, ranks * most), slots[std::size_t(i)].parts = coded(stream, ranks * most);
  const auto count_of = [&](std::int64_t k) { return std::min(most, n - k * most); };
  for (std::int64_t k = 0; k < chunks + 1; ++k) {
    if (k < chunks) {
      Slot& slot = slots[std::size_t(k % 2)];
      const std::int64_t count = count_of(k);
      if (count == n) convert(stream, values, slot.codes);
      else
        for (std::int64_t r = 0; r < ranks; ++r)
          convert(stream, part_of(values, r * n + k * most, count), part_of(slot.codes, r * count, count));
      send(stream, part_of(slot.codes, 0, ranks * count), part_of(slot.parts, 0, ranks * count), slot.sent);
    }
    if (k < 1) continue;
    Slot& slot = slots[std::size_t((k - 1) % 2)];
    slot.sent.hold(stream);
    convert(stream, part_of(slot.parts, 0, ranks * count_of(k - 1)), part_of(sums, (k - 1) * most, count_of(k - 1)));
  }
}

void EightBitSum::reduce_scatter(Stream& stream, const Stored& from, const Stored& to) {
  const std::int64_t n = to.count();
  check(from.storage == Storage::e4m3 && from.count() == n * ranks_.size() && n % storage_block == 0,
        "eight_bit_sum: {} must be e4m3 codes of {} times {}, a multiple of {} values", from.shape(), ranks_.size(), to.shape(),
        storage_block);
  const Scope scope(stream);
  const Stored parts = coded(stream, from.count());
  Point sent;
  send(stream, flat(from), parts, sent);
  sent.hold(stream);
  convert(stream, parts, to);
}

}  // namespace octet::parallel
