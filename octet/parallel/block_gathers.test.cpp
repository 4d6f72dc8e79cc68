#include "octet/parallel/block_gathers.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace octet::parallel {
namespace {

using Blocks = std::vector<int>;

// The blocks gathered while these are opened. A block that is opened is in its memory.
Blocks gathered(BlockGathers& gathers, Stream& stream, int blocks, const Blocks& opened) {
  Blocks out;
  static int in_memory[2];
  for (const int block : opened) {
    gathers.open(stream, block, blocks, [&](Stream&, int b) { out.push_back(b), in_memory[b % 2] = b; });
    EXPECT_EQ(in_memory[block % 2], block);
  }
  return out;
}

TEST(BlockGathers, GatherTheNextBlockOfThePassWhileOneIsUsed) {
  Stream stream(Device::cpu);
  Stream side(stream);
  BlockGathers gathers(&side);
  EXPECT_EQ(gathered(gathers, stream, 4, {0}), (Blocks{0, 1}));
  EXPECT_EQ(gathered(gathers, stream, 4, {1}), (Blocks{2}));
  EXPECT_EQ(gathered(gathers, stream, 4, {2, 3}), (Blocks{3}));
  EXPECT_EQ(gathered(gathers, stream, 4, {3}), (Blocks{})) << "backward begins with the blocks that forward ended with";
  EXPECT_EQ(gathered(gathers, stream, 4, {2}), (Blocks{1}));
  EXPECT_EQ(gathered(gathers, stream, 4, {1, 0}), (Blocks{0}));
  EXPECT_EQ(gathered(gathers, stream, 4, {0, 1}), (Blocks{2})) << "another forward of the same weights";
  gathers.forget();
  EXPECT_EQ(gathered(gathers, stream, 4, {0, 1, 2, 3}), (Blocks{0, 1, 2, 3}));
  EXPECT_EQ(gathered(gathers, stream, 4, {0, 1, 2, 3}), (Blocks{0, 1, 2, 3})) << "an evaluation after that";
}

TEST(BlockGathers, WithoutASideQueueGatherABlockWhenItIsOpened) {
  Stream stream(Device::cpu);
  BlockGathers gathers(nullptr);
  EXPECT_EQ(gathered(gathers, stream, 3, {0}), (Blocks{0}));
  EXPECT_EQ(gathered(gathers, stream, 3, {1, 2, 2, 1, 0}), (Blocks{1, 2, 0}));
}

TEST(BlockGathers, FewBlocks) {
  Stream stream(Device::cpu);
  Stream side(stream);
  for (const int blocks : {1, 2}) {
    BlockGathers gathers(&side);
    Blocks all;
    for (int b = 0; b < blocks; ++b) all.push_back(b);
    EXPECT_EQ(gathered(gathers, stream, blocks, all), all);
    EXPECT_EQ(gathered(gathers, stream, blocks, {blocks - 1, 0}), (Blocks{}));
  }
}

}  // namespace
}  // namespace octet::parallel
