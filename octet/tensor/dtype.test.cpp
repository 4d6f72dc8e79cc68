#include "octet/tensor/dtype.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/testing/code_table.hpp"
#include "tests/testing/scratch.hpp"

namespace octet {
namespace {

// Each type once more, from its definition.
struct Known {
  DType type;
  const char* name;
  std::size_t bytes;
  bool fp8;
};
constexpr Known all[] = {{DType::f32, "f32", 4, false},  {DType::bf16, "bf16", 2, false}, {DType::f16, "f16", 2, false},
                         {DType::e4m3, "e4m3", 1, true}, {DType::e5m2, "e5m2", 1, true},  {DType::e8m0, "e8m0", 1, false},
                         {DType::u8, "u8", 1, false},    {DType::i32, "i32", 4, false},   {DType::i64, "i64", 8, false},
                         {DType::f64, "f64", 8, false}};

TEST(DType, HasItsNameAndSize) {
  for (const Known& k : all) {
    EXPECT_EQ(name(k.type), k.name);
    EXPECT_EQ(size_of(k.type), k.bytes) << k.name;
    EXPECT_EQ(is_fp8(k.type), k.fp8) << k.name;
  }
}

TEST(DType, FormatMaxIsTheLargestFiniteValueOfAnEightBitFormat) {
  EXPECT_EQ(format_max(DType::e4m3), testing::CodeTable::e4m3().finite().back());
  EXPECT_EQ(format_max(DType::e5m2), testing::CodeTable::e5m2().finite().back());
  for (const Known& k : all)
    if (!k.fp8) {
      EXPECT_THROW((void)format_max(k.type), ContractError) << k.name;
    }
}

TEST(DType, DispatchCallsForTheOneTypeThatMatches) {
  for (const Known& k : all) {
    std::vector<std::size_t> sizes;
    const auto call = [&] {
      dispatch<float, Bf16, std::int64_t>(k.type, "op", [&]<class T>() {
        EXPECT_EQ(dtype_of<T>, k.type);
        sizes.push_back(sizeof(T));
      });
    };
    if (k.type == DType::f32 || k.type == DType::bf16 || k.type == DType::i64) {
      call();
      EXPECT_EQ(sizes, std::vector<std::size_t>{k.bytes});
    } else {
      EXPECT_EQ(testing::error_of<ContractError>(call),
                "op: dtype " + std::string(k.name) + " is not supported; supported: f32, bf16, i64");
      EXPECT_TRUE(sizes.empty());
    }
  }
}

}  // namespace
}  // namespace octet
