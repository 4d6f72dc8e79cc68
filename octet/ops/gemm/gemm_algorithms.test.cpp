#include "octet/ops/gemm/gemm_algorithms.hpp"

#include <gtest/gtest.h>

#include "octet/base/error.hpp"

namespace octet::ops {
namespace {

const GemmForm fp8{.M = 128,
                   .N = 256,
                   .K = 512,
                   .a = DType::e4m3,
                   .b = DType::e5m2,
                   .a_scale = GemmScale::row_128,
                   .b_scale = GemmScale::square_128,
                   .fast = true};
const GemmForm half{.M = 1, .N = 2, .K = 3, .b_transposed = true, .accumulate = true, .alignment = 16};
const GemmAlgorithm some{.config = {1, 2, 0xFFFFFFFFFFFFFFFFull, 4, 5, 6, 7, 8}, .workspace_bytes = 1 << 20, .microseconds = 12.5};

TEST(GemmAlgorithms, ComeBackFromTheirText) {
  GemmAlgorithms a, b;
  a.store(fp8, some);
  a.store(half, {});
  GemmForm third = fp8;
  third.M = 1024;
  GemmForm fourth = fp8;
  fourth.N = 512;
  const GemmAlgorithm own{.own = 1, .microseconds = 7.5}, other{.own = 2, .microseconds = 6.5};
  a.store(third, own), a.store(fourth, other);
  EXPECT_TRUE(b.load(a.text("library on GPU"), "library on GPU"));
  EXPECT_EQ(b.find(third), own);
  EXPECT_EQ(b.find(fourth), other);
  EXPECT_EQ(b.find(fp8), some);
  EXPECT_EQ(b.find(half), GemmAlgorithm{});
  EXPECT_EQ(b.text("library on GPU"), a.text("library on GPU"));
}

TEST(GemmAlgorithms, OfAnotherLibraryOrGpuAreNotTaken) {
  GemmAlgorithms a, b;
  a.store(fp8, some);
  EXPECT_FALSE(b.load(a.text("library 1"), "library 2"));
  EXPECT_FALSE(b.load("", "library 2"));
  EXPECT_FALSE(b.find(fp8).has_value());
}

TEST(GemmAlgorithms, KeepWhatIsKnown) {
  GemmAlgorithms a, b;
  a.store(fp8, some);
  b.store(fp8, {});
  EXPECT_TRUE(b.load(a.text("m"), "m"));
  EXPECT_EQ(b.find(fp8), GemmAlgorithm{});
}

TEST(GemmAlgorithms, RefuseADamagedText) {
  GemmAlgorithms a;
  a.store(fp8, some);
  const std::string good = a.text("m");
  for (const std::string& bad : {good.substr(0, good.size() - 8), good + "x\n", good + "1x1x1 bf16 bf16 bf16 = 12 zz\n",
                                 good + "1x1x1 bf16 bf16 bf16 = octet\n", good + "1x1x1 bf16 bf16 bf16 = octet 1 2\n",
                                 good + "1x1x1 bf16 bf16 bf16 = octet0 1\n", good + "1x1x1 bf16 bf16 bf16 = octetx 1\n"})
    EXPECT_THROW(a.load(bad, "m"), DataError) << bad;
}

TEST(GemmAlgorithms, TellFormsApart) {
  GemmForm other = fp8;
  EXPECT_EQ(to_text(fp8), "128x256x512 e4m3.1x128 e5m2.128x128 bf16 fast");
  for (bool GemmForm::*flag :
       {&GemmForm::a_transposed, &GemmForm::b_transposed, &GemmForm::accumulate, &GemmForm::biased, &GemmForm::fast, &GemmForm::factor}) {
    other = fp8;
    other.*flag = !(other.*flag);
    EXPECT_NE(to_text(other), to_text(fp8));
    EXPECT_NE(other, fp8);
  }
  EXPECT_EQ(to_text(half), "1x2x3 bf16 bf16.transposed bf16 accumulate aligned 16");
}

}  // namespace
}  // namespace octet::ops
