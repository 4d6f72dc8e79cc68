#include "octet/ops/clear_padding/clear_padding.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "octet/ops/clear_padding/clear_padding.kernels.hpp"
#include "tests/testing/tensors.hpp"

namespace octet::ops {
namespace {

TEST(ClearPadding, ClearsRowsBehindEachGroupAndNoOthers) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (auto* const kernel : testing::kernels(cpu::v3::clear_padding, cpu::v4::clear_padding)) {
      Stream s(Device::cpu);
      RowGroups groups{.begin = s.empty({4}, DType::i32), .count = s.empty({3}, DType::i32), .tile = 4};
      const std::int32_t begin[] = {0, 4, 4, 12}, count[] = {3, 0, 5};
      upload(s, begin, groups.begin), upload(s, count, groups.count);
      const Tensor x = testing::gaussian_tensor(s, {16, 3}, 1, dtype), before = s.empty(x.shape, dtype);
      copy(s, x, before);
      kernel(groups, x);
      for (std::int64_t r = 0; r < 16; ++r)
        for (std::int64_t c = 0; c < 3; ++c)
          EXPECT_EQ(value_at(x, r * 3 + c), r == 3 || (r >= 9 && r < 12) ? 0 : value_at(before, r * 3 + c)) << r;
    }
}

TEST(ClearPadding, RefusesOtherShapesAndTypes) {
  Stream s(Device::null);
  const RowGroups groups{.begin = s.empty({4}, DType::i32), .count = s.empty({3}, DType::i32), .tile = 4};
  EXPECT_NO_THROW(clear_padding(s, groups, s.empty({16, 3}, DType::f32)));
  EXPECT_THROW(clear_padding(s, groups, s.empty({16}, DType::f32)), ContractError);
  EXPECT_THROW(clear_padding(s, groups, s.empty({16, 3}, DType::e4m3)), ContractError);
}

}  // namespace
}  // namespace octet::ops
