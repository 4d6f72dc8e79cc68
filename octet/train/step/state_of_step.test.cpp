#include <gtest/gtest.h>

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

}  // namespace
}  // namespace octet::train
