#include "octet/tensor/side_work.hpp"

#include <gtest/gtest.h>

namespace octet {
namespace {

// On the CPU a side queue does its work when it gets it.
TEST(SideWork, IsInTheStreamItselfOrInASideQueueWithScratchOfItsOwn) {
  Stream stream(Device::cpu);
  Stream side(stream);
  SideWork in_stream;
  QueuedWork queued(side);
  for (SideWork* work : {&in_stream, static_cast<SideWork*>(&queued)}) {
    Stream* queue = nullptr;
    const SideWork::Piece piece = work->begin(stream, [&](Stream& q) { queue = &q; });
    EXPECT_EQ(queue, work == &queued ? &side : &stream);
    work->join(stream, piece), work->join(stream);
  }
}

TEST(SideWork, OfAQueueJoinsItsOwnPiecesAlone) {
  Stream stream(Device::cpu);
  Stream side(stream);
  QueuedWork queued(side);
  queued.join(stream);
  EXPECT_THROW(queued.join(stream, SideWork().begin(stream, [](Stream&) {})), ContractError) << "it would not be waited for";
}

// Of two streams that take turns.
TEST(SideWork, OfTwoStreamsIsJoinedByEachForItself) {
  Stream stream(Device::cpu);
  Stream side(stream), other(stream);
  QueuedWork queued(side);
  const auto nothing = [](Stream&) {};
  std::weak_ptr<const StreamEvent> last = queued.begin(other, nothing);
  queued.join(stream, queued.begin(stream, nothing)), queued.join(stream);
  EXPECT_FALSE(last.expired()) << "a piece of the other stream is still to be joined";
  queued.join(other);
  EXPECT_TRUE(last.expired());
}

}  // namespace
}  // namespace octet
