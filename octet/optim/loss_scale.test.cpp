#include "octet/optim/loss_scale.hpp"

#include <gtest/gtest.h>

#include "octet/config/attributes.hpp"
#include "tests/testing/saved_state.hpp"

namespace octet::optim {
namespace {

using octet::testing::SavedState;
using Mode = LossScaleConfig::Mode;

/// A loss scale after steps of which "x" are skipped and "." are good; what each step announced.
struct Steps {
  Stream stream{Device::cpu};
  LossScale scale;
  Tensor skip = stream.zeros({1}, DType::f32);
  explicit Steps(const LossScaleConfig& c, bool fixed = false) : scale(stream, c, fixed) {}
  float now() const { return *scale.scale().f32(); }
  float after(std::string_view steps) {
    for (const char step : steps) {
      *skip.f32() = step == 'x' ? 1 : 0;
      const LossScale::Move move = scale.read(stream, step == 'x');
      EXPECT_EQ(move.now, now());
      scale.end_step(stream, skip);
      EXPECT_EQ(move.next, now()) << "the host knows the next scale before the device has moved";
    }
    return now();
  }
};

TEST(LossScaleConfig, AutoIsDynamicForFp16ActivationsAlone) {
  const LossScaleConfig automatic;
  EXPECT_EQ(automatic.mode_for(DType::f16), Mode::dynamic);
  EXPECT_EQ(automatic.mode_for(DType::bf16), Mode::off);
  EXPECT_EQ(automatic.mode_for(DType::f32), Mode::off);
  for (const Mode mode : {Mode::off, Mode::fixed, Mode::dynamic})
    for (const DType type : {DType::f16, DType::bf16}) EXPECT_EQ(LossScaleConfig{.mode = mode}.mode_for(type), mode);
}

TEST(LossScaleConfig, RefusesFactorsThatAreNoPowersOfTwoAndAStartOutsideTheBounds) {
  Stream s(Device::cpu);
  const auto refusal = [&](const LossScaleConfig& c, bool fixed = false) -> std::string {
    try {
      LossScale scale(s, c, fixed);
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_NE(refusal({.start = 1000}).find("loss_scale.start = 1000: must be a power of two"), std::string::npos);
  EXPECT_NE(refusal({.growth = 1.5}).find("loss_scale.growth"), std::string::npos);
  EXPECT_NE(refusal({.backoff = 0.3}).find("loss_scale.backoff"), std::string::npos);
  EXPECT_NE(refusal({.smallest = 3}).find("loss_scale.smallest"), std::string::npos);
  EXPECT_NE(refusal({.largest = 1e6}).find("loss_scale.largest"), std::string::npos);
  EXPECT_NE(refusal({.start = 0x1p30}).find("loss_scale.start"), std::string::npos);
  EXPECT_NE(refusal({.start = 0.5}).find("must be between loss_scale.smallest = 1"), std::string::npos);
  EXPECT_EQ(refusal({.start = 0x1p30}, true), "") << "a static scale reads no bounds";
  EXPECT_NE(refusal({.start = 1000}, true), "");
}

TEST(LossScaleConfig, ProposesAPowerOfTwoThatItsKeyTakes) {
  Stream s(Device::cpu);
  for (const auto& [key, value, proposed] : {std::tuple{"largest", 1e18, "576460752303423488"},
                                             {"largest", 1e6, "1048576"},
                                             {"growth", 9e8, "536870912"},
                                             {"smallest", 1e-9, "1.862645149230957e-09"},
                                             {"backoff", 1.5e-9, "1.862645149230957e-09"},
                                             {"backoff", 0.3, "0.25"}}) {
    LossScaleConfig c;
    config::Origins origins;
    config::apply_override(c, format("{}={}", key, value), origins);
    try {
      LossScale scale(s, c, false);
      FAIL() << key << " = " << value << " must be refused";
    } catch (const ConfigError& e) {
      const std::string wanted = format("loss_scale.{} = {}: must be a power of two such as {},", key, value, proposed);
      EXPECT_TRUE(std::string(e.what()).starts_with(wanted)) << e.what();
    }
    EXPECT_NO_THROW(config::apply_override(c, format("{}={}", key, proposed), origins)) << key;
  }
}

TEST(LossScale, MovesAsItsConfigurationSays) {
  Steps steps({.start = 16, .growth = 4, .backoff = 0.25, .growth_steps = 2, .smallest = 2, .largest = 0x1p8});
  EXPECT_EQ(steps.after(".."), 64);
  EXPECT_EQ(steps.after("...."), 0x1p8);
  EXPECT_EQ(steps.after("xx"), 16);
  EXPECT_EQ(steps.after("xxx"), 2);
}

TEST(LossScale, AStaticOneNeverMoves) {
  Steps steps({.start = 0x1p12, .growth_steps = 1}, true);
  EXPECT_EQ(steps.after("...xxx..."), 0x1p12f);
}

TEST(LossScale, ContinuesFromItsState) {
  const LossScaleConfig c{.start = 16, .growth_steps = 3};
  Steps whole(c), before(c), after(c);
  whole.after("x..");
  before.after("x..");
  SavedState::of(before.scale).restore(after.scale);
  for (const char* step : {".", ".", "x", ".", ".", "."}) EXPECT_EQ(after.after(step), whole.after(step)) << step;
}

}  // namespace
}  // namespace octet::optim
