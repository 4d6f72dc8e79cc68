#include "octet/ops/quantize/from_codes.hpp"

#include <gtest/gtest.h>

#include "octet/ops/quantize/cases.testing.hpp"
#include "octet/ops/quantize/quantize.hpp"
#include "tests/testing/tensors.hpp"

// GEMM operands from row codes, against those that quantize() makes of the values.

namespace octet::ops {
namespace {

void expect_same(const Quantized& got, const Quantized& wanted, const std::string& what) {
  ASSERT_EQ(bool(got), bool(wanted)) << what;
  if (!got) return;
  EXPECT_TRUE(got.transposed == wanted.transposed && got.decoded == wanted.decoded && got.codes.dtype == wanted.codes.dtype) << what;
  EXPECT_EQ(testing::bytes(got.codes), testing::bytes(wanted.codes)) << what;
  ASSERT_EQ(bool(got.descales), bool(wanted.descales)) << what;
  if (got.descales) {
    EXPECT_EQ(testing::bytes(got.descales), testing::bytes(wanted.descales)) << what;
  }
}

struct Orientations {
  bool rows, cols;
  Lifetime region;
};

void compare(Stream& stream, const QuantizeCase& c, Shape shape, const Orientations& o, bool for_gemm, const std::string& what) {
  const Scope scope(stream);
  const Tensor x = testing::gaussian_tensor(stream, shape, 7, DType::f32);
  QuantizeSpec spec = c.spec;
  if (c.known) spec.scale = testing::tensor_of(stream, {100}, {1}), spec.descale = testing::tensor_of(stream, {1 / 100.0f}, {1});
  Sink rows = make_sink(stream, spec, {.shape = shape, .dtype = DType::f32, .plain = x});
  quantize(stream, x, rows);
  const SinkRequest request{.shape = shape,
                            .dtype = DType::f32,
                            .rows = o.rows,
                            .cols = o.cols,
                            .rows_region = o.region,
                            .cols_region = o.region,
                            .plain = x,
                            .for_gemm = for_gemm};
  Sink wanted = make_sink(stream, spec, request);
  quantize(stream, x, wanted);
  SinkRequest from_codes = request;
  from_codes.plain = {}, from_codes.codes = rows.codes.rows;
  Sink got = make_sink(stream, spec, from_codes);
  fill_from_codes(stream, rows.codes.rows, got);
  expect_same(got.codes.rows, wanted.codes.rows, what + ", rows");
  expect_same(got.codes.cols, wanted.codes.cols, what + ", columns");
  EXPECT_EQ(got.codes.one_matrix(), wanted.codes.one_matrix()) << what;
  if (o.rows && !got.codes.rows.decoded) {
    EXPECT_EQ(got.codes.rows.codes.data, rows.codes.rows.codes.data) << what << ": the codes themselves";
  }
}

TEST(FromCodes, EveryOperandHasTheBitsOfTheOneMadeFromValues) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    Stream stream(Device::cpu, {.gemm_compute = compute});
    for (const Shape shape : {Shape{16, 16}, Shape{144, 272}, Shape{256, 128}})
      for (const QuantizeCase& c : quantize_cases())
        for (const Orientations o :
             {Orientations{true, true, Lifetime::run}, {true, false, Lifetime::scratch}, {false, true, Lifetime::scratch}})
          for (const bool for_gemm : {false, true})
            if (c.spec.encodes_slices())
              compare(stream, c, shape, o, for_gemm,
                      format("{} {}, GEMMs in {}{}{}{}", c.name, shape, compute, o.rows ? ", rows" : "", o.cols ? ", columns" : "",
                             for_gemm ? ", for a GEMM" : ""));
  }
}

TEST(FromCodes, OfAnotherShapeOrWithScalesPerRowAreRefused) {
  Stream stream(Device::cpu);
  QuantizeSpec spec;
  spec.format = DType::e4m3;
  const auto matrix = [&](Shape shape, ScaleBlock block) {
    return Quantized{.codes = stream.zeros(shape, DType::e4m3),
                     .descales = stream.zeros(descale_shape(block, DType::f32, shape[0], shape[1]), DType::f32),
                     .block = block};
  };
  EXPECT_NO_THROW(transpose_codes(stream, matrix({32, 16}, {}), matrix({16, 32}, {})));
  EXPECT_THROW(transpose_codes(stream, matrix({32, 16}, {}), matrix({32, 16}, {})), ContractError);
  EXPECT_THROW(transpose_codes(stream, matrix({32, 24}, {}), matrix({24, 32}, {})), ContractError);
  EXPECT_THROW(transpose_codes(stream, matrix({32, 16}, {1, 0}), matrix({16, 32}, {1, 0})), ContractError);
  EXPECT_THROW(make_sink(stream, spec, {.shape = {16, 32}, .dtype = DType::f32, .codes = matrix({32, 16}, {})}), ContractError);
}

}  // namespace
}  // namespace octet::ops
