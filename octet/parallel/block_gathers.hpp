#pragma once

#include <array>

#include "octet/tensor/stream_event.hpp"

namespace octet::parallel {

/// Which blocks' weights are in the two memories that blocks of even and of odd number share in turn, and when the next ones are gathered:
/// while one block is used, its neighbour in the direction of the pass is gathered on a side queue.
///
///   forward    open(0) gathers 0, then 1;  open(1) gathers 2;  ...        backward    open(n - 1) has it;  open(n - 2) gathers n - 3;  ...
class BlockGathers {
 public:
  /// side: a side queue of the stream of all calls, which must outlive this; null: a block is gathered when it is opened.
  explicit BlockGathers(Stream* side) : side_(side) {}

  /// Work put into the stream from now on finds the weights of this block, until another of the same parity is opened. gather(queue, block)
  /// puts the gathering of a block into a queue. `blocks`: of the model.
  template <class Gather>
  void open(Stream& stream, int block, int blocks, const Gather& gather) {
    const int next = next_after(block);
    require(stream, block, gather);
    memory(block).arrived.wait(stream);
    opened_ = block;
    if (side_ != nullptr && next >= 0 && next < blocks) require(stream, next, gather);
  }
  /// Weights are to be gathered again: before and after each micro-batch, whose recording may hold the gathers, and after an update.
  void forget() { memories_[0].block = memories_[1].block = opened_ = none; }

 private:
  static constexpr int none = -1;
  struct Memory {
    int block = none;
    StreamEvent arrived;
  };
  Memory& memory(int block) { return memories_[std::size_t(block % 2)]; }
  // A pass over the blocks keeps its direction; backward begins with the block that forward ended with.
  int next_after(int block) const { return opened_ == none || block > opened_ ? block + 1 : block - 1; }

  template <class Gather>
  void require(Stream& stream, int block, const Gather& gather) {
    Memory& m = memory(block);
    if (m.block == block) return;
    Stream& queue = side_ != nullptr ? *side_ : stream;
    wait_for(queue, stream);  // the block that was in this memory has been used
    gather(queue, block);
    m.block = block, m.arrived.record(queue);
  }

  Stream* side_;
  std::array<Memory, 2> memories_;
  int opened_ = none;
};

}  // namespace octet::parallel
