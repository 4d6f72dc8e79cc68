#include "octet/parallel/eight_bit_sum.hpp"

#include <algorithm>

#include "octet/ops/stored_sum/stored_sum.hpp"
#include "octet/tensor/stored_memory.hpp"

namespace octet::parallel {
namespace {

// Codes for n values, a multiple of 128.
Stored coded(Stream& stream, std::int64_t n) { return empty_stored(stream, {n}, Storage::e4m3, Lifetime::scratch, Category::workspace); }
void copy_codes(Stream& stream, const Stored& from, const Stored& to) {
  copy(stream, from.codes, to.codes), copy(stream, from.scales, to.scales);
}

bool are_neighbours(std::span<const Stored> parts) {
  for (std::size_t r = 1; r < parts.size(); ++r) {
    const Stored &last = parts[r - 1], &x = parts[r];
    if (x.codes.u8() != last.codes.u8() + last.codes.bytes()) return false;
    if (x.scales && x.scales.u8() != last.scales.u8() + last.scales.bytes()) return false;
  }
  return true;
}

}  // namespace

void sum_of_parts(Stream& stream, std::span<const Stored> parts, const Stored& sum, bool adds) {
  if (!are_neighbours(parts)) return ops::stored_sum(stream, {.parts = parts[0], .sum = sum, .more = parts.subspan(1), .adds = adds});
  const auto together = [&](const Tensor& first) -> Tensor {
    return first ? Tensor{first.data, {first.count() * std::int64_t(parts.size())}, first.dtype} : Tensor{};
  };
  const Stored all{.codes = together(parts[0].codes), .scales = together(parts[0].scales), .storage = parts[0].storage};
  ops::stored_sum(stream, {.parts = all, .sum = sum, .adds = adds});
}

std::int64_t EightBitSum::chunk_of(std::int64_t count) const {
  const std::int64_t unit = storage_block * ranks_.size();
  return std::min(round_up(std::max<std::int64_t>(count, 1), unit), std::max(chunk_ / unit, std::int64_t(1)) * unit);
}

// to = the sum of all ranks' codes for this rank, which are read where they arrive. `to` may be the own part.
void EightBitSum::sum_parts(Stream& stream, const Stored& codes, const Stored& to, bool adds) {
  const std::int64_t groups = to.count() / storage_block;
  const Scope scope(stream);
  const Tensor scales = stream.empty(codes.scales.shape, codes.scales.dtype, Lifetime::scratch, Category::workspace);
  ranks_.all_to_all(stream, codes.scales, scales);
  std::vector<Stored> parts(std::size_t(ranks_.size()));
  ranks_.all_to_all(stream, codes.codes, [&](std::int64_t begin, std::span<const Tensor> arrived) {
    const std::int64_t n = arrived[0].count();
    for (std::size_t r = 0; r < parts.size(); ++r)
      parts[r] = {.codes = arrived[r],
                  .scales = scales.rows(std::int64_t(r) * groups + begin / storage_block, n / storage_block),
                  .storage = Storage::e4m3};
    sum_of_parts(stream, parts, to.part(begin, n), adds);
  });
}

// The own share becomes that of the sums, which then goes to all ranks.
void EightBitSum::all_reduce_codes(Stream& stream, const Stored& codes) {
  const std::int64_t share = codes.count() / ranks_.size();
  const Stored own = codes.part(ranks_.rank() * share, share);
  sum_parts(stream, codes, own);
  ranks_.together(stream, [&] { ranks_.all_gather(stream, own.codes, codes.codes), ranks_.all_gather(stream, own.scales, codes.scales); });
}

void EightBitSum::all_reduce(Stream& stream, const Tensor& x) {
  const Stored values = flat(Stored::plain(x));
  const std::int64_t most = chunk_of(x.count());
  const Scope scope(stream);
  const Stored codes = coded(stream, most);
  for (std::int64_t begin = 0; begin == 0 || begin < x.count(); begin += most) {
    const std::int64_t n = std::min(most, x.count() - begin);
    const Stored padded = codes.part(0, round_up(n, storage_block * ranks_.size())), used = padded.part(0, n);
    if (n < padded.count()) clear(stream, padded.codes), clear(stream, padded.scales);
    ops::convert_stored(stream, values.part(begin, n), used);
    decode_sums(stream, padded, values.part(begin, n));
  }
}

// values = the sums of all ranks' codes. Those of other owners are decoded where they arrive.
void EightBitSum::decode_sums(Stream& stream, const Stored& codes, const Stored& values) {
  const std::int64_t share = codes.count() / ranks_.size(), n = values.count();
  const Stored own = codes.part(ranks_.rank() * share, share);
  sum_parts(stream, codes, own);
  ranks_.all_gather(stream, own.scales, codes.scales);
  const auto decode = [&](std::int64_t first, const Tensor& arrived) {
    const std::int64_t count = std::clamp<std::int64_t>(n - first, 0, arrived.count());
    if (count == 0) return;
    const Stored sums{.codes = arrived, .scales = codes.part(first, arrived.count()).scales, .storage = Storage::e4m3};
    ops::convert_stored(stream, sums.part(0, count), values.part(first, count));
  };
  ranks_.all_gather(stream, own.codes, [&](int rank, std::int64_t begin, const Tensor& part) { decode(rank * share + begin, part); });
  decode(ranks_.rank() * share, own.codes);
}

void EightBitSum::all_reduce(Stream& stream, const Stored& x) {
  check(x.storage == Storage::e4m3, "eight_bit_sum: wants codes of e4m3, got {}", name(x.storage));
  const Stored own = flat(x);
  const std::int64_t padded = round_up(std::max<std::int64_t>(x.count(), 1), storage_block * ranks_.size());
  if (padded == x.count()) return all_reduce_codes(stream, own);
  const Scope scope(stream);
  const Stored codes = coded(stream, padded), used = codes.part(0, x.count());
  clear(stream, codes.codes), clear(stream, codes.scales);
  copy_codes(stream, own, used);
  all_reduce_codes(stream, codes);
  copy_codes(stream, used, own);
}

void EightBitSum::reduce_scatter(Stream& stream, const Tensor& from, const Stored& to, bool adds) {
  const std::int64_t n = to.count(), ranks = ranks_.size();
  check(from.count() == n * ranks && n % storage_block == 0, "eight_bit_sum: {} must be {} times {}, a multiple of {} values", from.shape,
        ranks, to.shape(), storage_block);
  const Stored values = flat(Stored::plain(from)), sums = flat(to);
  const std::int64_t most = chunk_of(from.count()) / ranks;
  const Scope scope(stream);
  const Stored codes = coded(stream, ranks * most);
  for (std::int64_t begin = 0; begin == 0 || begin < n; begin += most) {
    const std::int64_t count = std::min(most, n - begin);
    const Stored sent = codes.part(0, ranks * count);
    if (count == n) ops::convert_stored(stream, values, sent);
    else
      for (std::int64_t r = 0; r < ranks; ++r) ops::convert_stored(stream, values.part(r * n + begin, count), sent.part(r * count, count));
    sum_parts(stream, sent, sums.part(begin, count), adds);
  }
}

void EightBitSum::reduce_scatter(Stream& stream, const Stored& from, const Stored& to) {
  const std::int64_t n = to.count();
  check(from.storage == Storage::e4m3 && from.count() == n * ranks_.size() && n % storage_block == 0,
        "eight_bit_sum: {} must be e4m3 codes of {} times {}, a multiple of {} values", from.shape(), ranks_.size(), to.shape(),
        storage_block);
  sum_parts(stream, flat(from), flat(to));
}

}  // namespace octet::parallel
