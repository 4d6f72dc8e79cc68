#include <gtest/gtest.h>

#include "octet/base/file.hpp"
#include "octet/scaling/precision.hpp"
#include "octet/train/checkpoint/restore.hpp"
#include "octet/train/checkpoint/snapshot.hpp"
#include "tests/testing/scratch.hpp"
#include "tests/testing/tensors.hpp"

// State that an earlier version wrote, in the form that it has now.

namespace octet::train {
namespace {

using octet::testing::Scratch;

constexpr std::int64_t history = 4, experts = 3;

/// The quantizers of an ordinary layer and of a stack of experts.
struct Layers {
  Stream stream{Device::cpu};
  scaling::Precision precision;
  scaling::LinearPlan plans[2];

  explicit Layers(const std::string& recipe) : precision({.recipe = recipe, .options = {.history = history}}) {
    plans[0] = precision.plan({.path = "layers.0.attn.out", .out = 32, .in = 32, .layer = 0, .layers = 1});
    plans[1] = precision.plan({.path = "layers.0.mlp.experts.down",
                               .out = experts * 32,
                               .in = 32,
                               .matrices = experts,
                               .layer = 0,
                               .layers = 1,
                               .stack = experts});
    precision.allocate(stream);
  }
};

/// What stacks with one scale had: a column and a row for each of the six quantizers.
struct Earlier {
  bool known;
  Tensor maxima, scale, descale;

  struct Scales {
    Earlier& all;
    void visit_state(StateVisitor& v) { v.state("scale", all.scale), v.state("descale", all.descale); }
  };
  void visit_state(StateVisitor& v) {
    Scales scales{*this};
    v.state("amax_history", maxima);
    if (known) v.section("scales", scales);
  }
};

void write(Stream& stream, Earlier& state, const std::string& folder) {
  Capture capture(stream);
  state.visit_state(capture);
  const Snapshot s = capture.take();
  write_file(folder + "/state.safetensors", std::string(reinterpret_cast<const char*>(s.file.get()), s.bytes));
}

TEST(EarlierForm, OneScaleOfAStackBecomesThatOfEachMatrix) {
  for (const std::string recipe : {"delayed", "current"}) {
    const Scratch scratch;
    const bool known = recipe == "delayed";
    const std::int64_t rows = known ? history : 1;
    Stream s(Device::cpu);
    Earlier before{known, s.empty({rows, 6}, DType::f32), s.empty({6, 64}, DType::f32), s.empty({6, 64}, DType::f32)};
    for (std::int64_t i = 0; i < rows * 6; ++i) before.maxima.f32()[i] = float(i + 1);
    for (std::int64_t i = 0; i < 6 * 64; ++i)
      before.scale.f32()[i] = i % 64 == 0 ? float(100 + i / 64) : 1, before.descale.f32()[i] = 1 / before.scale.f32()[i];
    write(s, before, scratch.at("."));

    Layers now(recipe);
    const StateFiles files(scratch.at("."), {"state.safetensors"});
    for (const auto mode : {Restore::Mode::check, Restore::Mode::write}) {
      Restore restore(now.stream, files, mode);
      now.precision.visit_state(restore);
      restore.finish();
    }
    const auto states = now.precision.quantizer_states(now.stream);
    ASSERT_EQ(states.size(), 6u);
    for (std::size_t i = 0; i < 6; ++i) {
      const std::size_t n = i == 4 ? std::size_t(experts) : 1;  // w of the stack
      std::vector<float> maxima;
      for (std::size_t row = 0; row < std::size_t(rows); ++row) maxima.insert(maxima.end(), n, float(row * 6 + i + 1));
      EXPECT_EQ(states[i].maxima, maxima) << i;
      if (known) {
        EXPECT_EQ(states[i].scales, std::vector<float>(n, float(100 + i))) << i;
        EXPECT_EQ(states[i].descales, std::vector<float>(n, 1 / float(100 + i))) << i;
      }
    }
  }
}

TEST(EarlierForm, OtherShapesAreRefusedWithTheFormOfToday) {
  const Scratch scratch;
  Stream s(Device::cpu);
  Earlier before{false, s.zeros({1, 5}, DType::f32), {}, {}};
  write(s, before, scratch.at("."));
  Layers now("current");
  const StateFiles files(scratch.at("."), {"state.safetensors"});
  Restore restore(now.stream, files, Restore::Mode::check);
  try {
    now.precision.visit_state(restore);
    FAIL();
  } catch (const DataError& e) {
    EXPECT_NE(std::string(e.what()).find("amax_history must be F32 [1, 8], it is F32 [1, 5]"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace octet::train
