#include "octet/train/run/dry_run/sent_weights.hpp"

#include <gtest/gtest.h>

#include "octet/comm/dry_run/dry_run.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/small_model.testing.hpp"

// Bytes that a rank sends in a step, by the counters, against formulas of docs/parallel.md; and the plan's rows.

namespace octet::train {
namespace {

using optim::Level;

const Target target = machine::machine_target(Device::cpu);

EngineConfig config_of(const std::string& recipe, Level level, int ranks, std::int64_t zero) {
  EngineConfig config = testing::small_engine("llama", recipe);
  config.shape.layers = 4, config.shape.width = 256, config.shape.head_dim = 64, config.shape.hidden = 768, config.shape.vocabulary = 256;
  config.optimizer->level = level, config.ranks.zero = zero, config.planned_ranks = ranks;
  return config;
}

enum class Kind { block, matrix, vectors };
Kind kind_of(const nn::Bucket& b) {
  return b.parameters.front()->role == ParameterRole::vector ? Kind::vectors : b.block >= 0 ? Kind::block : Kind::matrix;
}

struct Sent {
  double gathered = 0, gradients = 0;
};

/// Of one rank in a step of so many micro-batches; `copy`: bytes of a value of a block's matrix that is no code; `to_quantize`: whether
/// those that are gathered are gathered once more per step. Backward begins with the two blocks that forward ended with.
Sent formula(const EngineConfig& config, double micro_batches, double copy, bool to_quantize) {
  comm::DryRunCommunicator planned(config.planned_ranks);
  const Engine e(config, Device::null, target, &planned);
  const double others = double(config.planned_ranks - 1) / config.planned_ranks;
  const std::int64_t zero = config.ranks.zero;
  Sent out;
  for (const nn::Bucket& b : e.parameters.buckets()) {
    const Kind kind = kind_of(b);
    const double passes = b.block < config.shape.layers - 2 ? 2 : 1;
    const double n = others * double(b.count), once_more = to_quantize && !b.codes;
    const double gathers = kind == Kind::block && zero == 3 ? passes * micro_batches + once_more : 1;
    out.gathered += n * gathers * (kind == Kind::block ? b.codes ? 1 : copy : kind == Kind::matrix ? 2 : 4);
    const Storage stored = kind == Kind::block ? config.optimizer->storage().gradients : Storage::f32;
    const double bytes = stored == Storage::f32 ? 4 : stored == Storage::bf16 ? 2 : 1 + 1.0 / 128;
    out.gradients += n * bytes * (zero >= 2 && kind == Kind::block ? micro_batches : 1);
  }
  return out;
}

Sent counted(const EngineConfig& config, std::int64_t micro_batches) {
  const DryRun dry = dry_run(config, target, 1, micro_batches);
  const auto bytes = [&](comm::Collective c) { return double(dry.sent[std::size_t(c)].bytes); };
  using enum comm::Collective;
  return {bytes(all_gather), bytes(reduce_scatter) + bytes(all_to_all)};
}

TEST(SentWeights, AndGradientsHaveTheBytesOfTheFormulasAtEveryLevelAndStage) {
  struct Recipe {
    const char* name;
    bool to_quantize;
  };
  for (const Recipe& recipe :
       {Recipe{"current", false}, {"delayed", false}, {"block128", false}, {"rowwise", true}, {"mxfp8", true}, {"bf16", false}})
    for (const Level level : {Level::O0, Level::O1, Level::O2, Level::O3})
      for (const int zero : {1, 2, 3})
        for (const auto& [ranks, micro_batches] : {std::pair{2, 3}, {8, 1}}) {
          const EngineConfig config = config_of(recipe.name, level, ranks, zero);
          const Sent got = counted(config, micro_batches), wanted = formula(config, micro_batches, 2, recipe.to_quantize);
          const std::string what = format("{} at {}, stage {} on {} ranks", recipe.name, level, zero, ranks);
          EXPECT_EQ(got.gathered, wanted.gathered) << what;
          EXPECT_EQ(got.gradients, wanted.gradients) << what;
        }
}

// Codes are encoded before they are gathered: only values are gathered to be quantized.
TEST(SentWeights, OfBlocksWithCodesAndValuesGatherCodesForTheirPassesAlone) {
  for (const auto& [recipe, other] : {std::pair{"current", "rowwise"}, {"rowwise", "block128"}}) {
    EngineConfig config = config_of(recipe, Level::O0, 4, 3);
    config.precision.rules = {{.path = "layers.*.mlp.*", .operands = {}, .recipe = other}};
    EXPECT_EQ(counted(config, 3).gathered, formula(config, 3, 2, true).gathered) << recipe << ", " << other;
  }
}

// A value of a matrix of a block sends one byte of gradient and one of weight, where a BF16 run sends 4 or 2, and 2.
// Source: Peng et al. 2023, "FP8-LM", which reports 63% to 65% less than with gradients in FP32.
TEST(SentWeights, OfO3AreAThirdOfBf16WithGradientsInF32AndHalfWithGradientsInBf16) {
  const auto bytes = [](const EngineConfig& config) { return double(dry_run(config, target, 1, 1).step.sent_bytes); };
  for (const int ranks : {2, 64}) {
    EngineConfig bf16 = config_of("bf16", Level::O0, ranks, 1), o3 = config_of("current", Level::O3, ranks, 1);
    for (EngineConfig* c : {&bf16, &o3}) c->shape.width = 512, c->shape.head_dim = 128, c->shape.hidden = 1536, c->shape.layers = 16;
    o3.comm.gradients = parallel::Wire::e4m3;
    const double f32 = bytes(bf16);
    bf16.comm.gradients = parallel::Wire::bf16;
    EXPECT_NEAR(bytes(o3) / f32, 2.0078 / 6, 0.01) << ranks;
    EXPECT_NEAR(bytes(o3) / bytes(bf16), 2.0078 / 4, 0.015) << ranks;
    bf16.ranks.zero = o3.ranks.zero = 0;  // gradients alone
    const double gradients = bytes(o3);
    EXPECT_NEAR(gradients / bytes(bf16), 1.0078 / 2, 0.01) << ranks;
    bf16.comm.gradients = parallel::Wire::f32;
    EXPECT_NEAR(gradients / bytes(bf16), 1.0078 / 4, 0.01) << ranks;
  }
}

std::vector<std::string> rows_of(const EngineConfig& config) {
  std::vector<std::string> out;
  for (const scaling::PlanRow& row : dry_run(config, target, 1, 1).plan)
    if (row.path == "weights sent between ranks") out.push_back(row.precision + " | " + row.why);
  return out;
}

TEST(SentWeights, AreNamedInThePlanWithTheReason) {
  const std::string others = "bf16 | embedding, head and positions: the masters, rounded to nearest; vectors are f32";
  const std::string codes = "the codes that GEMMs read, encoded from the masters as on one rank";
  using Rows = std::vector<std::string>;
  EXPECT_EQ(rows_of(config_of("current", Level::O0, 8, 0)), Rows{}) << "nothing is divided";
  EXPECT_EQ(rows_of(config_of("current", Level::O0, 1, 1)), Rows{});
  EXPECT_EQ(rows_of(config_of("block128", Level::O3, 8, 1)), (Rows{"e4m3 | matrices of blocks: " + codes, others}));
  EXPECT_EQ(rows_of(config_of("rowwise", Level::O0, 2, 3)),
            (Rows{"bf16 | matrices of blocks: the codes of the two orientations differ, so ranks make both from values", others}));
  EngineConfig mixed = config_of("current", Level::O0, 2, 2);
  mixed.precision.keep_bf16 = {"layers.*.mlp.*"};
  EXPECT_EQ(rows_of(mixed), (Rows{"e4m3 | layers.*.attn.qkv, layers.*.attn.out: " + codes,
                                  "bf16 | layers.*.mlp.gate_up, layers.*.mlp.down: GEMMs read values", others}));
  mixed.average = true;
  EXPECT_EQ(rows_of(mixed)[0], "bf16 | layers.*.attn.qkv, layers.*.attn.out: train.average keeps means of values");
  EXPECT_EQ(rows_of(config_of("fp32", Level::O0, 2, 1))[0], "f32 | matrices of blocks: GEMMs read values");
}

}  // namespace
}  // namespace octet::train
