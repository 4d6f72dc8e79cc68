#include "octet/train/run/record/step_history.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace octet::train {
namespace {

TEST(StepHistory, IsExactWhileItIsShort) {
  StepHistory history;
  EXPECT_TRUE(std::isnan(history.median()) && std::isnan(history.mean_of_last_part(20)));
  history.add(7);
  EXPECT_EQ(history.mean_of_last_part(20), 7);
  for (int i = 1; i < 100; ++i) history.add(i);  // 7, 1, 2, ..., 99
  EXPECT_EQ(history.count(), 100);
  EXPECT_EQ(history.mean_of_last_part(20), (95 + 96 + 97 + 98 + 99) / 5.0);
  EXPECT_EQ(history.median(), 50);
}

TEST(StepHistory, KeepsBoundedMeansOfALongRun) {
  struct Size final : StateVisitor {
    std::size_t values = 0;
    bool restoring() const override { return false; }
    void state(std::string_view, const Tensor&) override {}
    void state(std::string_view, const StoredSlice&, Tiny) override {}
    void state(std::string_view, std::int64_t&) override { ++values; }
    void state(std::string_view, double&) override { ++values; }
    void state(std::string_view, std::vector<double>& v) override { values += v.size(); }
    void enter(std::string_view) override {}
    void leave() override {}
  };
  StepHistory history;
  const std::int64_t n = 1'000'003;
  for (std::int64_t i = 0; i < n; ++i) history.add(double(i));
  EXPECT_EQ(history.count(), n);
  Size size;
  history.visit_state(size);
  EXPECT_LE(size.values, StepHistory::capacity + 3);
  // A mean covers 256 values at most here, so each end moves by less than that.
  EXPECT_NEAR(history.mean_of_last_part(20), double(n) - double(n) / 40, 256);
  EXPECT_NEAR(history.median(), double(n) / 2, 256);
}

}  // namespace
}  // namespace octet::train
