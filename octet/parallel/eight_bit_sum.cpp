#include "octet/parallel/eight_bit_sum.hpp"

#include "octet/ops/stored_sum/stored_sum.hpp"

namespace octet::parallel {
namespace {

// Codes for n values, a multiple of 128.
Stored coded(Stream& stream, std::int64_t n) {
  return {.codes = stream.empty({n}, DType::e4m3, Lifetime::scratch, Category::workspace),
          .scales = stream.empty({n / storage_block}, DType::e8m0, Lifetime::scratch, Category::workspace),
          .storage = Storage::e4m3};
}
// Values [begin, begin + n), where begin is a multiple of 128.
Stored part_of(const Stored& x, std::int64_t begin, std::int64_t n) {
  return {
      .codes = x.codes.rows(begin, n), .scales = x.scales.rows(begin / storage_block, ceil_div(n, storage_block)), .storage = x.storage};
}
Stored flat(const Stored& x) { return {.codes = x.codes.reshaped({x.count()}), .scales = x.scales, .storage = x.storage}; }

void all_to_all(Stream& stream, comm::Communicator& comm, const Stored& from, const Stored& to) {
  comm.all_to_all(stream, from.codes, to.codes);
  comm.all_to_all(stream, from.scales, to.scales);
}

// Codes of ranks * share values become those of the sums. share: a multiple of 128.
void sum_codes(Stream& stream, comm::Communicator& comm, const Stored& codes, std::int64_t share) {
  const Scope scope(stream);
  const Stored parts = coded(stream, codes.count()), own = part_of(codes, comm.rank() * share, share);
  all_to_all(stream, comm, codes, parts);
  ops::stored_sum(stream, {.parts = parts, .sum = own});
  comm.all_gather(stream, own.codes, codes.codes);
  comm.all_gather(stream, own.scales, codes.scales);
}

std::int64_t share_of(std::int64_t count, int ranks) { return round_up(ceil_div(count, std::int64_t(ranks)), storage_block); }

// f(codes) fills the codes for x's values, before padding.
template <class Fill>
Stored padded_codes(Stream& stream, std::int64_t count, std::int64_t padded, const Fill& fill) {
  const Stored codes = coded(stream, padded);
  clear(stream, codes.codes), clear(stream, codes.scales);
  fill(part_of(codes, 0, count));
  return codes;
}

}  // namespace

void eight_bit_reduce_scatter(Stream& stream, comm::Communicator& comm, const Tensor& from, const Stored& to) {
  const std::int64_t n = to.count();
  check(from.count() == n * comm.size() && n % storage_block == 0,
        "eight_bit_reduce_scatter: {} must be {} times {}, a multiple of {} values", from.shape, comm.size(), to.shape(), storage_block);
  const Scope scope(stream);
  const Stored codes = coded(stream, from.count()), parts = coded(stream, from.count());
  ops::stored_sum(stream, {.parts = Stored::plain(from.reshaped({from.count()})), .sum = codes});
  all_to_all(stream, comm, codes, parts);
  ops::stored_sum(stream, {.parts = parts, .sum = to});
}

void eight_bit_reduce_scatter(Stream& stream, comm::Communicator& comm, const Stored& from, const Stored& to) {
  const std::int64_t n = to.count();
  check(from.storage == Storage::e4m3 && from.count() == n * comm.size() && n % storage_block == 0,
        "eight_bit_reduce_scatter: {} must be e4m3 codes of {} times {}, a multiple of {} values", from.shape(), comm.size(), to.shape(),
        storage_block);
  const Scope scope(stream);
  const Stored parts = coded(stream, from.count());
  all_to_all(stream, comm, flat(from), parts);
  ops::stored_sum(stream, {.parts = parts, .sum = to});
}

void eight_bit_all_reduce(Stream& stream, comm::Communicator& comm, const Tensor& x) {
  const Stored values = Stored::plain(x.reshaped({x.count()}));
  const std::int64_t share = share_of(x.count(), comm.size());
  const Scope scope(stream);
  const Stored codes = padded_codes(stream, x.count(), share * comm.size(),
                                    [&](const Stored& own) { ops::stored_sum(stream, {.parts = values, .sum = own}); });
  sum_codes(stream, comm, codes, share);
  ops::stored_sum(stream, {.parts = part_of(codes, 0, x.count()), .sum = values});
}

void eight_bit_all_reduce(Stream& stream, comm::Communicator& comm, const Stored& x) {
  check(x.storage == Storage::e4m3, "eight_bit_all_reduce: wants codes of e4m3, got {}", name(x.storage));
  const Stored own = flat(x);
  const std::int64_t count = x.count(), share = share_of(count, comm.size());
  if (count == share * comm.size()) return sum_codes(stream, comm, own, share);
  const Scope scope(stream);
  const auto copy_codes = [&](const Stored& from, const Stored& to) {
    copy(stream, from.codes, to.codes), copy(stream, from.scales, to.scales);
  };
  const Stored codes = padded_codes(stream, count, share * comm.size(), [&](const Stored& part) { copy_codes(own, part); });
  sum_codes(stream, comm, codes, share);
  copy_codes(part_of(codes, 0, count), own);
}

}  // namespace octet::parallel
