#include "octet/nn/parameters.hpp"

#include <gtest/gtest.h>

namespace octet::nn {
namespace {

// More values than go through the host's memory at once.
TEST(Parameters, begin_with_the_same_values_however_they_are_stored) {
  const Shape shape{(1 << 24) + 6, 1};
  Stream stream(Device::cpu);
  Parameter f32("weight", shape, {Init::Kind::normal, 0.02}, true), bf16("weight", shape, {Init::Kind::normal, 0.02}, true);
  f32.value = stream.empty(shape, DType::f32, Lifetime::run), bf16.value = stream.empty(shape, DType::bf16, Lifetime::run);
  initialize(stream, f32, 7), initialize(stream, bf16, 7);
  std::int64_t differ = 0;
  for (std::int64_t i = 0; i < shape.count(); ++i) differ += bf16.value.bf16()[i].bits != to_bf16(f32.value.f32()[i]).bits;
  EXPECT_EQ(differ, 0);
  EXPECT_NE(f32.value.f32()[0], f32.value.f32()[1 << 24]);
}

}  // namespace
}  // namespace octet::nn
