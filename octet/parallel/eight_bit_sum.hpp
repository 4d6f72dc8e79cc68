#pragma once

#include <optional>

#include "octet/comm/communicator.hpp"
#include "octet/tensor/point.hpp"
#include "octet/tensor/storage.hpp"

namespace octet::parallel {

/// Sums over ranks with E4M3 codes on the wire, and a power-of-two scale per 128 values. Each rank encodes its values once, codes go
/// all-to-all, the rank that owns a share decodes and adds them in FP32 in the order of ranks. No partial sum is rounded to 8 bits, so the
/// error of a sum of independent values is the same at every number of ranks: 2.65% (root mean square), 3.75% with the encoded sum that
/// goes back (4.0% at two ranks, where sums are often half way between codes). A rank sends 8.0625 bits per value and direction. NaN and
/// infinity become NaN in every rank's sum.
///
/// On a GPU, with `overlap`, large tensors go in chunks: collectives are work of a side queue, beside the encoding and adding of other
/// chunks. The results have the same bits.
class EightBitSum {
 public:
  static constexpr std::int64_t least_chunk = std::int64_t(1) << 24;

  /// Of calls on this stream or its side queues. Stream and communicator must outlive this. `least`: values of a chunk, at least.
  EightBitSum(Stream&, comm::Communicator&, bool overlap, std::int64_t least = least_chunk);

  /// to[i] = sum over ranks of from[rank * n + i]. from: f32 or bf16 [ranks * n]; to: f32, bf16 or e4m3 [n]; n is a multiple of 128.
  /// `to` may be the own part of `from`. Throws ContractError on other shapes or storages. Workspace: at most two bytes per value of
  /// `from`.
  void reduce_scatter(Stream&, const Tensor& from, const Stored& to);
  /// The same of e4m3 codes, which are sent as they are, in one piece.
  void reduce_scatter(Stream&, const Stored& from, const Stored& to);

  /// x[i] = sum over ranks of x[i], where the owner's sum is encoded, too: the same bits on every rank. x: f32 or bf16 of any count.
  /// Workspace: at most two bytes per value.
  void all_reduce(Stream&, const Tensor& x);
  /// The same for e4m3 codes, which are sent as they are.
  void all_reduce(Stream&, const Stored& x);

 private:
  static constexpr int in_flight = 3;  // chunks: one is encoded, one added, one on its way back
  // Memory of a chunk, and the ends of its collectives.
  struct Slot {
    Stored codes, parts;
    Point sent, gathered;
  };
  // A piece of the values: [begin, begin + count), with padding ranks * share.
  struct Chunk {
    std::int64_t begin = 0, count = 0, share = 0;
    Stored codes;
    Slot* slot = nullptr;
  };
  std::int64_t chunk_of(std::int64_t count) const;
  template <class Encode, class Decode>
  void all_reduce_chunks(Stream&, std::int64_t count, const Stored& own, const Encode&, const Decode&);
  void send(Stream&, const Stored& from, const Stored& to, Point& sent);
  void sum_share(Stream&, const Chunk&);
  Stream& wire(Stream& stream) { return side_ ? *side_ : stream; }

  comm::Communicator& ranks_;
  std::int64_t least_;
  std::optional<Stream> side_;
};

}  // namespace octet::parallel
