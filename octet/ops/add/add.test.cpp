#include "octet/ops/add/add.hpp"

#include <gtest/gtest.h>

#include "octet/ops/add/add.kernels.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

using testing::gaussian_tensor;

constexpr std::int64_t counts[] = {0, 1, 7, 16, 33, 4096, 4097, 20011};
constexpr DType dtypes[] = {DType::f32, DType::bf16, DType::f16};

TEST(Add, RoundsTheExactSumOnce) {
  for (const std::int64_t n : counts)
    for (const DType dtype : dtypes)
      for (auto* const kernel : testing::kernels(cpu::v3::add, cpu::v4::add)) {
        Stream s(Device::cpu);
        const Tensor a = gaussian_tensor(s, {n}, 1, dtype), b = gaussian_tensor(s, {n}, 2, dtype, 0.01), out = s.empty({n}, dtype);
        kernel(a, b, out);
        for (std::int64_t i = 0; i < n; ++i) {
          const float sum = value_at(a, i) + value_at(b, i);
          ASSERT_EQ(value_at(out, i), testing::rounded(sum, dtype)) << n << " " << i;
        }
      }
}

TEST(Add, OutMayBeEitherTerm) {
  Stream s(Device::cpu);
  const Tensor a = gaussian_tensor(s, {5, 1030}, 1, DType::bf16), b = gaussian_tensor(s, {5, 1030}, 2, DType::bf16),
               out = s.empty(a.shape, DType::bf16);
  const Tensor a2 = s.empty(a.shape, DType::bf16);
  copy(s, a, a2);
  add(s, a, b, out);
  add(s, a2, b, a2);
  add(s, a, b, b);
  EXPECT_EQ(testing::bytes(a2), testing::bytes(out));
  EXPECT_EQ(testing::bytes(b), testing::bytes(out));
}

TEST(Add, RefusesTensorsThatAreNotAlike) {
  Stream s(Device::null);
  const Tensor a = s.empty({4, 8}, DType::f32), other = s.empty({8, 4}, DType::f32), half = s.empty({4, 8}, DType::bf16);
  EXPECT_THROW(add(s, a, other, a), ContractError);
  EXPECT_THROW(add(s, a, a, half), ContractError);
  EXPECT_NO_THROW(add(s, a, a, a));
  Stream real(Device::cpu);
  const Tensor integers = real.empty({4}, DType::i32);
  EXPECT_THROW(add(real, integers, integers, integers), ContractError);
}

TEST(Add, DryRunNeedsTheSameMemory) {
  testing::expect_dry_run_agrees([](Stream& s) {
    const Tensor a = gaussian_tensor(s, {5, 33}, 1);
    add(s, a, a, a);
  });
}

}  // namespace
}  // namespace octet::ops
