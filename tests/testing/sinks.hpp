#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "octet/ops/quantize/quantize.hpp"
#include "octet/ops/quantize/sink.hpp"
#include "tests/testing/tensors.hpp"

// Shared by tests of ops that fill a sink.

namespace octet::testing {

/// Shapes that ops of rows are tried on: none, one, odd ones, no multiples of a register, more rows than a tile, long rows.
inline constexpr std::int64_t row_shapes[][2] = {{0, 8}, {1, 1}, {3, 7}, {5, 16}, {2, 33}, {130, 129}, {9, 1030}};
/// The storage types of activations, and those that are quantized.
inline constexpr DType activation_dtypes[] = {DType::f32, DType::bf16, DType::f16};
inline constexpr DType quantized_dtypes[] = {DType::f32, DType::bf16};

/// A sink that keeps the values and encodes nothing.
inline ops::Sink plain_sink(Stream& stream, Shape shape, DType dtype) {
  return ops::make_sink(stream, {.format = dtype}, {.shape = shape, .dtype = dtype});
}

/// Specs of every kind: known scale, per tensor, row and block.
inline std::vector<ops::QuantizeSpec> quantized_specs(Stream& stream) {
  const ScaleBlock tensor{0, 0}, row{1, 0}, v32{1, 32}, v128{1, 128};
  return {{.format = DType::e4m3, .scale = tensor_of(stream, {24}, {1}), .descale = tensor_of(stream, {1 / 24.0f}, {1})},
          {.format = DType::e5m2, .rows = tensor, .cols = tensor},
          {.format = DType::e4m3, .rule = ScaleRule::power_of_two, .rows = row, .cols = row},
          {.format = DType::e4m3, .rule = ScaleRule::power_of_two, .rows = v128, .cols = v128},
          {.format = DType::e4m3, .rule = ScaleRule::e8m0, .rows = v32, .cols = v32}};
}

/// fill(stream, sink) into a sink that quantizes gives the codes, descales, maximum and counts of quantize() after the same into a
/// plain one, bit by bit.
template <class Fill>
void expect_fused_equals_unfused(Shape shape, DType dtype, const Fill& fill) {
  Stream stream(Device::cpu);
  ops::Sink plain = plain_sink(stream, shape, dtype);
  fill(stream, plain);
  for (ops::QuantizeSpec spec : quantized_specs(stream))
    for (const bool cols : {false, true}) {
      const ops::SinkRequest want{.shape = shape, .dtype = dtype, .cols = cols};
      ops::QuantizeHealth health[2];
      const Tensor amax = stream.zeros({2}, DType::f32);
      spec.amax = amax.rows(0, 1), spec.health = &health[0], spec.measure_noise = true;
      ops::Sink fused = ops::make_sink(stream, spec, want);
      fill(stream, fused);
      spec.amax = amax.rows(1, 1), spec.health = &health[1];
      ops::Sink after = ops::make_sink(stream, spec, want);
      ops::quantize(stream, plain.plain, after);

      const auto what = [&] { return to_text(shape) + " " + to_text(dtype) + " to " + to_text(spec.format) + " by " + to_text(spec.rows); };
      ASSERT_EQ(bytes(fused.codes.rows.codes), bytes(after.codes.rows.codes)) << what();
      ASSERT_EQ(bytes(fused.codes.rows.descales), bytes(after.codes.rows.descales)) << what();
      if (cols) {
        ASSERT_EQ(bytes(fused.codes.cols.codes), bytes(after.codes.cols.codes)) << what();
        ASSERT_EQ(bytes(fused.codes.cols.descales), bytes(after.codes.cols.descales)) << what();
      }
      ASSERT_EQ(amax.f32()[0], amax.f32()[1]) << what();
      ASSERT_EQ(health[0].saturated, health[1].saturated) << what();
      ASSERT_EQ(health[0].flushed, health[1].flushed) << what();
      ASSERT_EQ(health[0].scale_min, health[1].scale_min) << what();
      ASSERT_EQ(health[0].blocks.log_scale_squares, health[1].blocks.log_scale_squares) << what();
      ASSERT_EQ(health[0].blocks.lossy, health[1].blocks.lossy) << what();
      ASSERT_EQ(health[0].scale_max, health[1].scale_max) << what();
    }
}

}  // namespace octet::testing
