#include "octet/optim/level.hpp"

#include <gtest/gtest.h>

namespace octet::optim {
namespace {

// Peng et al. 2023, "FP8-LM", table 6: 16 bytes with FP32 states, 6 with FP16 masters, FP8 gradients and first and FP16 second moments.
TEST(Level, HasTheBytesPerParameterOfItsSource) {
  EXPECT_EQ(bytes_per_parameter(storage_of(Level::O0)), 16);
  EXPECT_EQ(bytes_per_parameter(storage_of(Level::O1)), 13);
  EXPECT_EQ(bytes_per_parameter(storage_of(Level::O2)), 8);
  EXPECT_EQ(bytes_per_parameter(storage_of(Level::O3)), 6);
}

TEST(Level, NoLevelIsUnsafe) {
  for (int i = 0; i < levels; ++i) EXPECT_EQ(unsafe_reason(storage_of(Level(i))), "") << i;
}

TEST(Level, CombinationsThatFailHaveAReason) {
  for (const Storage master : {Storage::bf16_nearest, Storage::e4m3_tensor}) EXPECT_NE(unsafe_reason({.master = master}), "");
  EXPECT_NE(unsafe_reason({.m = Storage::e4m3_tensor, .v = Storage::e4m3_tensor}), "");
  EXPECT_EQ(unsafe_reason({.m = Storage::e4m3_tensor, .v = Storage::f16}), "") << "as FP8-LM has it";
}

}  // namespace
}  // namespace octet::optim
