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

}  // namespace
}  // namespace octet
