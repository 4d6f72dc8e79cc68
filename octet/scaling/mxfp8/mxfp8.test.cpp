#include "octet/scaling/mxfp8/mxfp8.hpp"

#include <gtest/gtest.h>

#include "octet/scaling/recipe.testing.hpp"

// The definition: 32 values along K share a power of two 2^X, stored as E8M0, and each is v / 2^X in E4M3. OCP MX 1.0, section 6.3, takes
// X = floor(log2(amax)) - 8, 8 being the exponent of E4M3's largest power of two. Where that takes the maximum beyond 448, X is one more
// (Mishra et al. 2025, "Recipes for Pre-training LLMs with MXFP8"). X is limited to what E8M0 holds, -127 to 127.

namespace octet::scaling {
namespace {

using testing::Definition;
using testing::OneLayer;

int ocp_exponent(double amax) { return int(std::floor(std::log2(amax))) - 8; }
int exponent(double amax) {
  if (amax == 0) return -127;
  if (std::isinf(amax)) return 127;
  const int x = ocp_exponent(amax);
  return std::max(std::ldexp(amax, -x) > 448 ? x + 1 : x, -127);
}

/// Descales are stored by rows, blocks of K up to a multiple of 4.
Definition blocks(std::int64_t cols, DType format = DType::e4m3) {
  return {.format = format,
          .block_rows = 1,
          .block_cols = 32,
          .scale = [](double amax) { return std::exp2(-exponent(amax)); },
          .at = [=](std::int64_t i, std::int64_t j) { return i * ((cols + 127) / 128 * 4) + j; },
          .power_of_two = true};
}

TEST(Mxfp8, PlansBlocksOf32ForEveryOperand) {
  OneLayer layer({.recipe = "mxfp8"});
  EXPECT_EQ(layer.row(), "x e4m3, w e4m3, dy e4m3; 1x32 blocks, E8M0 scales rounded up | recipe mxfp8");
  EXPECT_EQ(layer.precision.calibration_passes(), 0);
}

TEST(Mxfp8, EveryBlockOf32HasItsPowerOfTwo) {
  for (const testing::Values kind : {testing::Values::finite, testing::Values::any})
    for (const Operand o : testing::operands) {
      OneLayer layer({.recipe = "mxfp8"});
      const testing::Matrix m = OneLayer::values(o, kind, 9, o == Operand::gradient ? 1e-4 : 1);
      const QTensor q = quantized(layer.stream, layer.operand(o), m);
      ASSERT_EQ(q.rows.descales.dtype, DType::e8m0);
      ASSERT_EQ(q.rows.descales.shape[0] % 128, 0) << "tiles of 128 x 4";
      expect_defined(q.rows, m, blocks(m.cols), std::string(name(o)));
      expect_defined(q.cols, m.transposed(), blocks(m.rows), std::string(name(o)) + ", transposed");
    }
}

// The exponent as its code says it, for maxima around E4M3's largest value and at the ends of E8M0.
TEST(Mxfp8, TheStoredCodeIsTheExponentPlus127) {
  OneLayer layer({.recipe = "mxfp8"});
  for (const float amax : {1.0f, 1.75f, 1.7578125f, 1.9921875f, 2.0f, 448.0f, 450.0f, 512.0f, 0x1p-60f, 0x1p-110f, 0x1p-125f, 0x1.ep127f}) {
    testing::Matrix m{16, 32, std::vector<float>(512, 0.0f)};
    m.x[5 * 32 + 3] = -amax;
    const QTensor q = quantized(layer.stream, *layer.plan.x, m);
    EXPECT_EQ(int(q.rows.descales.u8()[5 * 4]), exponent(amax) + 127) << amax;
    EXPECT_EQ(int(q.rows.descales.u8()[6 * 4]), 0) << "a block of zeros";
    // One more than OCP's exponent exactly where the maximum would saturate.
    const int ocp = ocp_exponent(amax);
    if (ocp > -127) {
      EXPECT_EQ(exponent(amax) - ocp, std::ldexp(amax, -ocp) > 448 ? 1 : 0) << amax;
      EXPECT_NEAR(value_at(q.rows, 5, 3), -amax, amax / 16) << "half a unit of 3 mantissa bits";
    }
  }
}

TEST(Mxfp8, ALayerWhoseWidthIs32DoesNotDivideStaysInBf16) {
  Precision precision({.recipe = "mxfp8"});
  EXPECT_EQ(precision.plan({.path = "a", .out = 64, .in = 48}).precision, "bf16");
  EXPECT_EQ(precision.rows().back().why, "64 x 48 is not a multiple of 32, as 8-bit GEMMs need");
}

}  // namespace
}  // namespace octet::scaling
