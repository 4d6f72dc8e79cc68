#include "octet/nn/recompute.hpp"

#include <gtest/gtest.h>

#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/small_model.testing.hpp"

namespace octet::train {
namespace {

using namespace octet::train::testing;

const std::vector<std::string> some_parts[] = {
    {"norm"}, {"activation"}, {"norm", "activation"}, {"mlp"}, {"attention"}, {"mlp", "attention"}, {"block"}};

TEST(Recompute, KeepsLessTheMoreIsComputedAgain) {
  const auto kept = [](const char* family, const std::vector<std::string>& parts) {
    EngineConfig config = small_engine(family, "bf16", nn::Recompute::named(parts));
    config.shape.layers = 16;  // what one block rebuilds counts too, once
    return dry_run(config, machine::machine_target(Device::cpu), 8, 1).memory.by_category[int(Category::activations)];
  };
  for (const char* family : {"llama", "qwen3", "gpt2"}) {
    EXPECT_LT(kept(family, {"norm"}), kept(family, {})) << family;
    EXPECT_LT(kept(family, {"activation"}), kept(family, {})) << family;
    EXPECT_LT(kept(family, {"mlp"}), kept(family, {"norm", "activation"})) << family;
    EXPECT_LT(kept(family, {"attention"}), kept(family, {"norm"})) << family;
    EXPECT_LT(kept(family, {"mlp", "attention"}), kept(family, {"mlp"})) << family;
    EXPECT_LT(kept(family, {"block"}), kept(family, {"mlp", "attention"})) << family;
  }
}

TEST(Recompute, OfSomeBlocksLiesBetweenThatOfNoneAndOfAllInMemoryAndWork) {
  for (const char* recipe : {"bf16", "current"})
    for (const std::vector<std::string>& parts : some_parts) {
      const auto planned = [&](const nn::Recompute& recompute, std::int64_t layers) {
        EngineConfig config = small_engine("llama", recipe, recompute);
        config.shape.layers = 16, config.model.recompute_layers = layers;
        return dry_run(config, {.device = Device::cuda, .multiprocessors = 132}, 8, 1);
      };
      DryRun less = planned({}, 0);
      for (const std::int64_t layers : {1, 4, 8, 12, 16}) {
        const DryRun more = planned(nn::Recompute::named(parts), layers);
        EXPECT_LT(more.memory.total, less.memory.total) << recipe << ::testing::PrintToString(parts) << layers;
        EXPECT_LT(more.memory.by_category[int(Category::activations)], less.memory.by_category[int(Category::activations)])
            << recipe << layers;
        EXPECT_GT(more.step.flops + more.step.bytes, less.step.flops + less.step.bytes)
            << recipe << ::testing::PrintToString(parts) << layers;
        less = more;
      }
      const DryRun all = planned(nn::Recompute::named(parts), 0);
      EXPECT_EQ(all.memory.by_category, less.memory.by_category) << recipe << ::testing::PrintToString(parts);
      EXPECT_EQ(all.step.flops, less.step.flops) << recipe << ::testing::PrintToString(parts);
    }
}

TEST(Recompute, OfMoreBlocksThanThereAreOrOfNothingIsRefused) {
  const auto refusal = [](const nn::Recompute& recompute, std::int64_t layers) -> std::string {
    EngineConfig config = small_engine("gpt2", "bf16", recompute);
    config.model.recompute_layers = layers;
    try {
      dry_run(config, {}, 1, 1);
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({.mlp = true}, 2), "");
  EXPECT_EQ(refusal({.mlp = true}, 3), "model.recompute_layers = 3 must be between 0 (all blocks) and model.layers = 2");
  EXPECT_EQ(refusal({.mlp = true}, -1), "model.recompute_layers = -1 must be between 0 (all blocks) and model.layers = 2");
  EXPECT_EQ(refusal({}, 1), "model.recompute_layers = 1 has nothing to recompute: set model.recompute too, or leave it out");
}

TEST(Recompute, AWordThatIsNoPartIsRefusedWithTheNearest) {
  try {
    nn::Recompute::named(std::vector<std::string>{"norm", "atention"});
    FAIL();
  } catch (const ConfigError& e) {
    EXPECT_EQ(std::string(e.what()),
              "model.recompute: \"atention\" is no part of a block, which has norm, activation, mlp, attention and block; did you mean "
              "\"attention\"?");
  }
}

}  // namespace
}  // namespace octet::train
