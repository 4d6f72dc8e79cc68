#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "octet/nn/linear_site.hpp"
#include "octet/ops/quantize/quantize.hpp"
#include "octet/train/checkpoint/slices.testing.hpp"
#include "octet/train/step/meshes.testing.hpp"
#include "tests/testing/saved_state.hpp"
#include "tests/testing/scratch.hpp"

// The scales of experts' weights: one per matrix.

namespace octet::train {
namespace {

using namespace octet::train::testing;
using octet::testing::Scratch;
using Side = nn::Weight::Side;

constexpr std::int64_t experts = 4;

EngineConfig config_of(const std::string& recipe, std::int64_t layers = 1) {
  EngineConfig c = small_engine("qwen3_moe", recipe);
  c.shape.width = 128, c.shape.head_dim = 32, c.shape.layers = layers, c.shape.tied = false;
  c.shape.experts = {
      .number = experts, .chosen = 2, .width = 64, .normalize = true, .balance = {.over = nn::Balance::Over::layer, .loss = 0.01}};
  c.precision.options.history = 3;
  return c;
}

std::vector<nn::LinearSite*> stacks_of(Engine& e) {
  struct Collect final : nn::Visitor {
    std::vector<nn::LinearSite*> stacks;
    void linear(nn::LinearSite& l) override {
      if (l.matrices() > 1) stacks.push_back(&l);
    }
  } collect;
  e.model->visit(collect);
  EXPECT_FALSE(collect.stacks.empty());
  return collect.stacks;
}

std::vector<float> master_of(Engine& e, const nn::LinearSite& l) {
  return nn::flat_values(e.stream, std::vector{const_cast<nn::LinearSite&>(l).weight().parameter().value.values()});
}

// Expert 0's matrices are 2^12 times as large as the others'.
void enlarge_first(Engine& e) {
  for (nn::LinearSite* l : stacks_of(e)) {
    Parameter& p = l->weight().parameter();
    for (std::int64_t i = 0; i < p.shape.count() / experts; ++i) p.value.values().f32()[i] *= 0x1p12f;
    ++p.version;
  }
}

float largest(const std::vector<float>& x, std::int64_t from, std::int64_t n) {
  float out = 0;
  for (std::int64_t i = from; i < from + n; ++i) out = std::max(out, std::fabs(x[std::size_t(i)]));
  return out;
}

// The worst error of y = x w^T, for x of ones, of alternating signs and of one value that is not 0, in units of the bound that E4M3 gives
// under a scale of the largest of these weights: 2^-4 of a normal value, half of the least step 2^-9 of a smaller one.
double worst_product(const Quantized& rows, const std::vector<float>& master, std::int64_t expert, std::int64_t out, std::int64_t in) {
  double worst = 0;
  const double least = 0x1p-10 * largest(master, expert * out * in, out * in) / 448;
  for (std::int64_t n = expert * out; n < (expert + 1) * out; ++n) {
    double sum = 0, alternating = 0, bounds = 0;
    for (std::int64_t k = 0; k < in; ++k) {
      const double w = master[std::size_t(n * in + k)], error = double(value_at(rows, n, k)) - w;
      const double bound = std::max(0x1p-4 * std::fabs(w), least) * (1 + 0x1p-20);
      sum += error, alternating += k % 2 != 0 ? -error : error, bounds += bound;
      worst = std::max(worst, std::fabs(error) / bound);
    }
    worst = std::max({worst, std::fabs(sum) / bounds, std::fabs(alternating) / bounds});
  }
  return worst;
}

class ExpertScales : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Recipes, ExpertScales, ::testing::Values("current", "delayed"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(ExpertScales, AnExpertOfLargeWeightsLeavesTheOthersWithTheirPrecision) {
  for (const auto codes : {scaling::WeightCodes::cached, scaling::WeightCodes::on_demand}) {
    EngineConfig config = config_of(GetParam());
    config.precision.weights = codes, config.precision.options.calibration = 0;
    Engine e(config, Device::cpu, {});
    StepRunner runner = begin_steps(e);
    enlarge_first(e);
    for (int s = 0; s < 2; ++s) runner.run(std::vector{random_batch(1, 32, 61, 1)}, {.learning_rate = 0});
    e.quantize_weights({});
    for (nn::LinearSite* l : stacks_of(e)) {
      const std::vector<float> master = master_of(e, *l);
      const Scope scope(e.stream);
      const Quantized rows = l->weight().operand(e.stream, Side::rows);
      ops::Sink one = ops::make_sink(e.stream, {.format = DType::e4m3}, {.shape = l->weight().parameter().shape, .dtype = DType::f32});
      ops::quantize(e.stream, l->weight().parameter().value, one);
      for (std::int64_t x = 0; x < experts; ++x) {
        EXPECT_LE(worst_product(rows, master, x, l->out(), l->in()), 1) << l->path() << " " << x;
        if (x > 0) {
          EXPECT_GT(worst_product(one.codes.rows, master, x, l->out(), l->in()), 2) << "one scale flushes " << l->path() << " " << x;
        }
      }
    }
  }
}

// What a loop of quantizations of ordinary tensors gives, whose scale follows from the own maxima alone.
void expect_operands(Engine& e, nn::LinearSite& l, const std::vector<float>& scales) {
  const Parameter& p = l.weight().parameter();
  const std::int64_t out = l.out(), in = l.in();
  for (std::int64_t x = 0; x < experts; ++x) {
    const Scope scope(e.stream);
    ops::QuantizeSpec spec{.format = DType::e4m3};
    if (!scales.empty()) {
      spec.scale = e.stream.empty({1}, DType::f32), spec.descale = e.stream.empty({1}, DType::f32);
      *spec.scale.f32() = scales[std::size_t(x)], *spec.descale.f32() = 1 / scales[std::size_t(x)];
    }
    ops::Sink alone = ops::make_sink(e.stream, spec, {.shape = {out, in}, .dtype = DType::f32, .cols = true});
    ops::quantize(e.stream, p.value.values().rows(x * out, out), alone);
    const Quantized rows = l.weight().operand(e.stream, Side::rows), cols = l.weight().operand(e.stream, Side::cols);
    for (std::int64_t n = 0; n < out; ++n)
      for (std::int64_t k = 0; k < in; ++k) {
        ASSERT_EQ(value_at(rows, x * out + n, k), value_at(alone.codes.rows, n, k)) << l.path() << " " << x;
        ASSERT_EQ(value_at(cols, k, x * out + n), value_at(alone.codes.cols, k, n)) << l.path() << " " << x;
      }
  }
}

// Under `delayed` the scale of step s is that of the maxima before it, the last two of a history of three, and of the current ones before
// the next: the rule of one tensor, written out.
TEST_P(ExpertScales, EveryMatrixIsThatOfAnOrdinaryLayer) {
  const bool delayed = std::string(GetParam()) == "delayed";
  for (const auto codes : {scaling::WeightCodes::cached, scaling::WeightCodes::on_demand}) {
    EngineConfig config = config_of(GetParam());
    config.precision.weights = codes;
    Engine e(config, Device::cpu, {});
    StepRunner runner = begin_steps(e);
    std::map<std::string, std::vector<std::vector<float>>> maxima;  // by step and expert
    const auto note = [&] {
      for (nn::LinearSite* l : stacks_of(e)) {
        const std::vector<float> master = master_of(e, *l);
        const std::int64_t n = l->out() * l->in();
        std::vector<float> now;
        for (std::int64_t x = 0; x < experts; ++x) now.push_back(largest(master, x * n, n));
        maxima[l->path()].push_back(now);
      }
    };
    for (int s = 0; s < 4; ++s) {
      note();
      runner.run(std::vector{random_batch(1, 32, 61, std::uint64_t(s))}, {.learning_rate = 0.05});
      for (nn::LinearSite* l : stacks_of(e)) {
        std::vector<float> scales;
        const auto& seen = maxima[l->path()];
        for (std::size_t x = 0; x < std::size_t(experts) && delayed; ++x) {
          float most = 0;
          for (std::size_t i = seen.size() - std::min<std::size_t>(seen.size(), 3); i < seen.size(); ++i) most = std::max(most, seen[i][x]);
          scales.push_back(448 / most);
        }
        expect_operands(e, *l, scales);
      }
    }
  }
}

// The state after 2 steps, and the loss of the third, of a run that goes on and of one that resumes.
TEST_P(ExpertScales, ARunResumesWithTheSameBitsOnEveryMesh) {
  for (const Mesh& mesh : {Mesh{}, Mesh{.data = 2, .expert = 2}, Mesh{.data = 2, .zero = 1}, Mesh{.data = 2, .zero = 2},
                           Mesh{.data = 2, .zero = 3}, Mesh{.pipeline = 2}}) {
    const EngineConfig config = config_of(GetParam(), 2);
    const Scratch scratch, end;
    const auto batch = [](Engine& e, int step) {
      std::vector<data::Batch> out;
      for (std::uint64_t i = 0; i < 2; ++i)
        out.push_back(random_batch(1, 32, 61, 100 * std::uint64_t(step) + 10 * i + std::uint64_t(e.axes.sequence_group())));
      return out;
    };
    double losses[2] = {};
    on_mesh(config, mesh, [&](Engine& e, int rank) {
      StepRunner runner = begin_steps(e);
      for (int s = 0; s < 2; ++s) runner.run(batch(e, s), {.learning_rate = 1e-2});
      save(e, rank, scratch.at("."));
      runner.run(batch(e, 2), {.learning_rate = 1e-2}, [&] {
        const double loss = read_out(e).loss;
        if (rank == 0) losses[0] = loss;
      });
      save(e, rank, end.at("."));
    });
    const Scratch again;
    on_mesh(config, mesh, [&](Engine& e, int rank) {
      load(e, scratch.at("."));
      StepRunner runner(e);
      runner.run(batch(e, 2), {.learning_rate = 1e-2}, [&] {
        const double loss = read_out(e).loss;
        if (rank == 0) losses[1] = loss;
      });
      save(e, rank, again.at("."));
    });
    EXPECT_EQ(losses[0], losses[1]) << mesh.text();
    for (int rank = 0; rank < mesh.all(); ++rank) {
      const std::string name = "/" + state_file_name(rank);
      if (!exists(end.at(".") + name)) continue;
      EXPECT_EQ(read_file(again.at(".") + name, 1 << 26), read_file(end.at(".") + name, 1 << 26)) << mesh.text() << " rank " << rank;
    }
  }
}

struct Operands {
  std::string path;
  std::int64_t first;  // row of the whole stack
  Shape shape;
  std::vector<float> rows, cols;
};

std::vector<Operands> operands_of(Engine& e) {
  std::vector<Operands> out;
  struct Collect final : nn::Visitor {
    Engine& e;
    std::vector<Operands>& out;
    Collect(Engine& e, std::vector<Operands>& out) : e(e), out(out) {}
    void block(int number) override { e.model->open(e.stream, number); }
    void linear(nn::LinearSite& l) override {
      if (l.path().find("experts") == std::string::npos) return;
      const Scope scope(e.stream);
      const Parameter& p = l.weight().parameter();
      Operands o{l.path(), p.cut ? p.cut.pieces[0].first / p.shape[1] : 0, p.shape, {}, {}};
      const Quantized rows = l.weight().operand(e.stream, Side::rows), cols = l.weight().operand(e.stream, Side::cols);
      for (std::int64_t r = 0; r < p.shape[0]; ++r)
        for (std::int64_t c = 0; c < p.shape[1]; ++c) o.rows.push_back(value_at(rows, r, c)), o.cols.push_back(value_at(cols, c, r));
      out.push_back(o);
    }
  } collect(e, out);
  e.model->visit(collect);
  return out;
}

// Divided masters, experts on ranks of their own, codes that travel: the operands are those of one rank with the same state.
TEST_P(ExpertScales, OperandsOnRanksAreThoseOfOneRank) {
  for (const Mesh& mesh : {Mesh{.data = 2, .expert = 2}, Mesh{.data = 3, .zero = 2}, Mesh{.data = 2, .zero = 3},
                           Mesh{.data = 4, .zero = 1, .expert = 2}, Mesh{.tensor = 2, .data = 2, .zero = 1}}) {
    const EngineConfig config = config_of(GetParam());
    const Scratch scratch;
    std::vector<std::vector<Operands>> all;
    all.resize(std::size_t(mesh.all()));
    on_mesh(config, mesh, [&](Engine& e, int rank) {
      StepRunner runner = begin_steps(e);
      for (int s = 0; s < 2; ++s)
        runner.run(std::vector{random_batch(1, 32, 61, 10 * std::uint64_t(s) + std::uint64_t(e.axes.sequence_group()))},
                   {.learning_rate = 0.05});
      all[std::size_t(rank)] = operands_of(e);
      save(e, rank, scratch.at("."));
    });
    Engine one(config, Device::cpu, machine::machine_target(Device::cpu));
    load(one, scratch.at("."));
    const StepRunner quantized(one);
    const std::vector<Operands> wanted = operands_of(one);
    for (const auto& of_rank : all)
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        const Operands& got = of_rank[i];
        const std::size_t from = std::size_t(got.first * got.shape[1]);
        ASSERT_EQ(got.path, wanted[i].path);
        EXPECT_TRUE(std::ranges::equal(got.rows, std::span(wanted[i].rows).subspan(from, got.rows.size()))) << got.path << mesh.text();
        EXPECT_TRUE(std::ranges::equal(got.cols, std::span(wanted[i].cols).subspan(from, got.cols.size()))) << got.path << mesh.text();
      }
  }
}

// Ranks with experts of their own know the maxima of all.
TEST(ExpertScales, MaximaAndScalesAreEqualOnAllRanks) {
  const EngineConfig config = config_of("delayed");
  std::vector<std::vector<scaling::QuantizerState>> states(2);
  on_mesh(config, {.data = 2, .expert = 2}, [&](Engine& e, int rank) {
    StepRunner runner = begin_steps(e);
    for (int s = 0; s < 3; ++s) runner.run(std::vector{random_batch(1, 32, 61, std::uint64_t(s))}, {.learning_rate = 0.05});
    states[std::size_t(rank)] = e.precision.quantizer_states(e.stream);
  });
  int stacks = 0;
  for (std::size_t i = 0; i < states[0].size(); ++i) {
    const scaling::QuantizerState &a = states[0][i], &b = states[1][i];
    EXPECT_EQ(a.scales, b.scales) << a.slot.path;
    const auto past = [](const scaling::QuantizerState& q) { return std::vector(q.maxima.begin() + q.slot.matrices, q.maxima.end()); };
    EXPECT_EQ(past(a), past(b)) << a.slot.path;
    if (a.slot.matrices == 1) continue;
    ++stacks;
    EXPECT_EQ(a.slot.matrices, experts);
    EXPECT_EQ(std::ssize(a.scales), experts);
    for (std::size_t x = 1; x < std::size_t(experts); ++x) EXPECT_NE(a.scales[x], a.scales[0]) << a.slot.path;
  }
  EXPECT_EQ(stacks, 2);
}

}  // namespace
}  // namespace octet::train
