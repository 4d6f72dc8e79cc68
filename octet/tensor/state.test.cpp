#include "octet/tensor/state.hpp"

#include <gtest/gtest.h>

#include "tests/testing/saved_state.hpp"

namespace octet {
namespace {

struct Inner {
  std::int64_t count = 3;
  std::vector<double> losses{1, 2};
  void visit_state(StateVisitor& visitor) { visitor.state("count", count), visitor.state("losses", losses); }
};
struct Outer {
  Tensor table;
  double mean = 0.5;
  Inner inner;
  void visit_state(StateVisitor& visitor) { visitor.state("table", table), visitor.section("inner", inner), visitor.state("mean", mean); }
};

TEST(State, IsShownUnderTheNamesOfItsSections) {
  float values[] = {1, 2, 3};
  Outer outer{.table = {values, {3}, DType::f32}};
  EXPECT_EQ(testing::SavedState::of(outer).names(), (std::vector<std::string>{"table", "inner.count", "inner.losses", "mean"}));
}

TEST(State, ComesBackAsItWas) {
  float values[] = {1, 2, 3}, others[] = {7, 8, 9};
  Outer outer{.table = {values, {3}, DType::f32}}, other{.table = {others, {3}, DType::f32}};
  other.mean = 9, other.inner.count = 11, other.inner.losses = {4, 5, 6, 7};
  const auto saved = testing::SavedState::of(outer);
  EXPECT_FALSE(saved == testing::SavedState::of(other));
  saved.restore(other);
  EXPECT_TRUE(saved == testing::SavedState::of(other));
  EXPECT_EQ(others[2], 3);
  EXPECT_EQ(other.inner.losses, (std::vector<double>{1, 2}));
  EXPECT_EQ(other.inner.count, 3);
  EXPECT_EQ(other.mean, 0.5);
}

}  // namespace
}  // namespace octet
