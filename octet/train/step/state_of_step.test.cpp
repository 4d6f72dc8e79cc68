#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "octet/train/checkpoint/snapshot.hpp"
#include "octet/train/step/small_model.testing.hpp"

namespace octet::train {
namespace {

using namespace octet::train::testing;

class StateOfStep : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Recipes, StateOfStep, ::testing::Values("fp32", "bf16", "fp16", "current", "delayed", "block128", "mxfp8"));

// A checkpoint is copied beside forward and backward.
TEST_P(StateOfStep, IsThatOfTheLastStepUntilTheUpdate) {
  Engine e(small_engine("llama", GetParam()), Device::cpu, machine::machine_target(Device::cpu));
  StepRunner runner = train_steps(e, 2, 2);
  const auto variables = [&] {
    Capture capture(e.stream);
    capture.section("model", e.parameters), capture.section("optimizer", *e.optimizer);
    const Snapshot s = capture.take();
    return std::vector<std::byte>(s.span().begin(), s.span().end());
  };
  const std::vector<std::byte> before = variables();
  int calls = 0;
  const auto compare = [&] {
    ++calls;
    EXPECT_TRUE(variables() == before);
  };
  const StepOptions options{.learning_rate = 1e-2, .measure = true, .before_update = compare};
  EXPECT_TRUE(runner.run(std::vector<data::Batch>{random_batch(2, 32, 61, 5), random_batch(2, 32, 61, 6)}, options));
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(variables() == before);
}

// Maxima of 16 quantizers and more fill the size from which variables are copied beside the step.
TEST_P(StateOfStep, IsCopiedBesideTheNextStepAsItWasAtItsBoundary) {
  for (const bool late : {true, false}) {
    Engine e(small_engine("llama", GetParam()), Device::cpu, machine::machine_target(Device::cpu));
    StepRunner runner = train_steps(e, 2, 2);
    Capture whole(e.stream), begun(e.stream);
    e.visit_state(whole), e.visit_state(begun);
    const Snapshot wanted = whole.take(), copied = begun.begin();
    std::jthread copying;
    if (!late) copying = std::jthread([&] { copied.missing->run(); });
    const auto before_update = [&] { late ? copied.missing->run() : copying.join(); };
    EXPECT_TRUE(runner.run(std::vector<data::Batch>{random_batch(2, 32, 61, 5), random_batch(2, 32, 61, 6)},
                           {.learning_rate = 1e-2, .measure = true, .before_update = before_update}));
    ASSERT_EQ(copied.bytes, wanted.bytes);
    EXPECT_TRUE(std::ranges::equal(copied.span(), wanted.span()));
    EXPECT_TRUE(GetParam() != "delayed" || e.precision.slots().history().bytes() >= std::size_t(64) << 10);
  }
}

}  // namespace
}  // namespace octet::train
