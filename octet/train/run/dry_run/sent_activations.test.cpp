#include "octet/train/run/dry_run/sent_activations.hpp"

#include <gtest/gtest.h>

#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/small_model.testing.hpp"

// The plan's rows of activations that two tensor ranks gather, and the bytes of these gathers.

namespace octet::train {
namespace {

using Rows = std::vector<std::string>;

EngineConfig config_of(const std::string& recipe, const std::vector<std::string>& recomputed, bool forward_values) {
  EngineConfig config = testing::small_engine("llama", recipe, nn::Recompute::named(recomputed));
  config.shape.hidden = 128, config.ranks.tensor = 2;
  config.precision.forward_values = forward_values;
  return config;
}

DryRun planned(const EngineConfig& config) { return dry_run(config, machine::machine_target(Device::cpu), 1, 1); }

// Of x alone.
Rows rows_of(const EngineConfig& config) {
  Rows out;
  for (const scaling::PlanRow& row : planned(config).plan)
    if (row.path == "rows gathered by ranks" && row.why.starts_with("x of")) out.push_back(row.precision + " | " + row.why);
  return out;
}

std::int64_t gathered(const EngineConfig& config) { return planned(config).sent[std::size_t(comm::Collective::all_gather)].bytes; }

const std::string one_scale = ": one scale for all rows, by the maximum over the ranks", values = ": forward reads values of it";

TEST(SentActivations, OfRecomputedNormsAreCodesInBackwardWhereForwardReadsValues) {
  EXPECT_EQ(rows_of(config_of("current", {}, true)), (Rows{"bf16 | x of layers.*.attn.qkv, x of layers.*.mlp.gate_up" + values}));
  EXPECT_EQ(rows_of(config_of("current", {"norm"}, true)),
            (Rows{"bf16 | x of layers.*.attn.qkv in forward, x of layers.*.mlp.gate_up in forward" + values,
                  "e4m3 | x of layers.*.attn.qkv in backward, x of layers.*.mlp.gate_up in backward" + one_scale}));
  EXPECT_EQ(rows_of(config_of("current", {"norm", "mlp"}, true)),
            (Rows{"bf16 | x of layers.*.attn.qkv in forward, x of layers.*.mlp.gate_up" + values,
                  "e4m3 | x of layers.*.attn.qkv in backward" + one_scale}))
      << "a recomputed MLP reads values again";
  EXPECT_EQ(rows_of(config_of("current", {"norm"}, false)), (Rows{"e4m3 | x of layers.*.attn.qkv, x of layers.*.mlp.gate_up" + one_scale}));
}

// Of two blocks with two norms each: half of 32 rows of 64 values per rank.
TEST(SentActivations, HaveTheBytesOfTheirFormats) {
  for (const bool forward_values : {false, true})
    EXPECT_EQ(gathered(config_of("current", {"norm"}, forward_values)) - gathered(config_of("current", {}, forward_values)),
              2 * 2 * 32 * 64 / 2)
        << forward_values;
  EXPECT_EQ(gathered(config_of("bf16", {"norm"}, false)) - gathered(config_of("bf16", {}, false)), 2 * (2 * 2 * 32 * 64 / 2));
  // Values of forward, codes of backward: as recomputed branches, which gather values twice, have one byte per value more.
  EXPECT_EQ(gathered(config_of("current", {"mlp", "attention"}, true)) - gathered(config_of("current", {"norm"}, true)),
            2 * 2 * 32 * 64 / 2);
}

}  // namespace
}  // namespace octet::train
