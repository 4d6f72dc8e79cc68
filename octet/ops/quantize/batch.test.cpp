#include "octet/ops/quantize/batch.hpp"

#include <gtest/gtest.h>

#include "octet/ops/quantize/cases.testing.hpp"
#include "tests/testing/tensors.hpp"

// Of a GPU, tests/cuda/quantize.parity.cpp.

namespace octet::ops {
namespace {

TEST(QuantizeBatch, ACpuQuantizesAtOnce) {
  Stream stream(Device::cpu);
  const Shape shape{40, 24};
  const Tensor x = testing::gaussian_tensor(stream, shape, 7, DType::f32);
  const QuantizeSpec spec{.format = DType::e4m3, .rows = {1, 0}, .cols = {1, 0}};
  const SinkRequest request{.shape = shape, .dtype = DType::f32, .cols = true};
  Sink alone = make_sink(stream, spec, request), together = make_sink(stream, spec, request);
  quantize(stream, x, alone);
  QuantizeBatch batch(stream);
  batch.add(Stored::plain(x), together);
  EXPECT_EQ(testing::bytes(together.codes.rows.codes), testing::bytes(alone.codes.rows.codes));
  EXPECT_EQ(testing::bytes(together.codes.cols.codes), testing::bytes(alone.codes.cols.codes));
  EXPECT_EQ(testing::bytes(together.codes.rows.descales), testing::bytes(alone.codes.rows.descales));
  batch.run();
}

TEST(QuantizeBatch, RefusesAnotherShape) {
  Stream stream(Device::cpu);
  const Tensor x = testing::gaussian_tensor(stream, {40, 24}, 7, DType::f32);
  Sink sink = make_sink(stream, {.format = DType::e4m3}, {.shape = {24, 40}, .dtype = DType::f32});
  EXPECT_THROW(QuantizeBatch(stream).add(Stored::plain(x), sink), ContractError);
}

}  // namespace
}  // namespace octet::ops
