#include "octet/train/run/dry_run/planned_work.hpp"

#include <gtest/gtest.h>

#include "tests/testing/scratch.hpp"

namespace octet::train {
namespace {
using octet::testing::error_of, octet::testing::has;

constexpr telemetry::StepWork plan{.gemm_flops = 3e12, .fp8_flops = 2e12, .collectives = 7, .sent_bytes = 1000};

TEST(PlannedWork, OfAStepThatRanAsPlannedIsAccepted) {
  EXPECT_EQ(error_of<ContractError>([] { require_as_planned(plan, plan, 3, 1); }), "no error");
}

TEST(PlannedWork, EveryDifferenceIsAnErrorWithBothNumbers) {
  const auto error = [](auto change) {
    telemetry::StepWork ran = plan;
    change(ran);
    return error_of<ContractError>([&] { require_as_planned(ran, plan, 3, 1); });
  };
  const std::string fp8 = error([](auto& w) { w.fp8_flops = 0; });
  EXPECT_TRUE(has(fp8, "step 3 of rank 1") && has(fp8, "with 8-bit operands: 0, and 2,000,000,000,000 planned")) << fp8;
  EXPECT_FALSE(has(fp8, "bytes sent"));
  EXPECT_TRUE(has(error([](auto& w) { w.gemm_flops *= 2; }), "FLOP of matrix products: 6,000,000,000,000"));
  EXPECT_TRUE(has(error([](auto& w) { ++w.collectives; }), "collectives: 8, and 7 planned"));
  EXPECT_TRUE(has(error([](auto& w) { w.sent_bytes = 4000; }), "bytes sent: 4,000, and 1,000 planned"));
}

}  // namespace
}  // namespace octet::train
