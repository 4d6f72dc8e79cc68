#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "octet/tensor/tensor.hpp"

namespace octet::comm {

/// An operation of all ranks, or of two. The names are those of errors, counters and records.
enum class Collective : std::uint8_t { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, send, receive, barrier };
inline constexpr int collectives = 8;
constexpr std::string_view name(Collective c) {
  constexpr std::string_view names[] = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all",
                                        "broadcast",  "send",           "receive",    "barrier"};
  return names[std::size_t(c)];
}

/// How the values of ranks become one.
enum class Reduction : std::uint8_t {
  sum,
  max,  // NaN is ignored unless all values are NaN
};
constexpr std::string_view name(Reduction r) { return r == Reduction::sum ? "sum" : "max"; }

/// Numbers of values that go to, or come from, each rank, in the order of ranks.
using Counts = std::span<const std::int64_t>;

/// One call of one rank.
struct Call {
  Collective kind = Collective::barrier;
  Tensor from, to;  // the same tensor for all_reduce and broadcast
  Reduction reduction = Reduction::sum;
  int peer = -1;                    // of send, receive; the root of broadcast
  bool begins = false;              // of send, and of uneven parts: it need not wait for receives
  Counts sent = {}, received = {};  // of an all_to_all of uneven parts; otherwise empty

  bool uneven() const { return !sent.empty(); }

  /// The larger of the two tensors: all ranks' values.
  const Tensor& whole() const { return from.count() > to.count() ? from : to; }
};

/// "all_reduce (sum) of f32 [12]", "send of u8 [3] to rank 2".
std::string to_text(const Call&);

/// Bytes that a rank sends in the call, by an algorithm that sends no byte twice (n ranks, B bytes of Call::whole()):
///   all_reduce                                2 (n-1) B / n
///   reduce_scatter, all_gather, all_to_all      (n-1) B / n
///   all_to_all of uneven parts                the parts for other ranks
///   broadcast                                 B by the root, if there are other ranks
///   send                                      B
///   receive, barrier                          0
std::int64_t bytes_sent(const Call&, int rank, int size);

/// Calls of one kind and their bytes_sent().
struct Traffic {
  std::int64_t calls = 0, bytes = 0;
  friend Traffic operator+(const Traffic& a, const Traffic& b) { return {a.calls + b.calls, a.bytes + b.bytes}; }
  friend Traffic operator-(const Traffic& a, const Traffic& b) { return {a.calls - b.calls, a.bytes - b.bytes}; }
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

}  // namespace octet::comm
