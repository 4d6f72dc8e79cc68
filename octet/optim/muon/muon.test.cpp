#include "octet/optim/muon/muon.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <memory>
#include <sstream>

#include "octet/ops/stored/stored.hpp"
#include "octet/optim/muon/newton_schulz.hpp"
#include "octet/optim/optimizer.hpp"
#include "tests/testing/tensors.hpp"

// Against tests/golden/muon.txt, which tests/peers/muon.py made in double precision.

namespace octet::optim {
namespace {

using testing::tensor_of;

struct Golden {
  std::string name;
  Shape shape;
  std::vector<std::pair<std::int64_t, double>> samples;  // flat index, value
};

std::vector<Golden> read_golden() {
  std::ifstream file(std::string(OCTET_SOURCE_DIR) + "/tests/golden/muon.txt");
  std::vector<Golden> all;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    Golden g;
    std::string shape, sample, size;
    line >> g.name >> shape;
    if (g.name == "#") continue;
    std::vector<std::int64_t> sizes;
    for (std::istringstream s(shape); std::getline(s, size, 'x');) sizes.push_back(std::stoll(size));
    g.shape = sizes.size() == 3 ? Shape{sizes[0], sizes[1], sizes[2]} : Shape{sizes[0], sizes[1]};
    while (line >> sample) g.samples.emplace_back(std::stoll(sample), std::stod(sample.substr(sample.find(':') + 1)));
    all.push_back(std::move(g));
  }
  return all;
}

/// muon.py's values(): the same bits.
std::vector<float> values_of(const std::string& name, std::int64_t count) {
  std::uint32_t key = 0x811C9DC5;
  for (const char byte : name) key = (key ^ std::uint8_t(byte)) * 0x01000193;
  std::vector<float> out;
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint32_t h = key + std::uint32_t(i) * 0x9E3779B9;
    h = (h ^ h >> 16) * 0x85EBCA6B;
    h = (h ^ h >> 13) * 0xC2B2AE35;
    out.push_back(float((h ^ h >> 16) >> 16) * 0x1p-17f - 0.25f);
  }
  return out;
}

constexpr int steps = 20;
constexpr double rate = 2e-2;

/// Parameters with the start of muon.py, and an optimizer with its numbers.
class Training {
 public:
  explicit Training(Target target, OptimizerConfig config = {})
      : stream_(Device::cpu, target), zero_(stream_.zeros({1}, DType::f32, Lifetime::run)) {
    config.name = "muon";
    for (const Golden& g : golden_)
      if (g.name != "orthogonal") add(g.name, g.shape, config.storage());
    std::vector<ParameterSlice> slices;
    for (const auto& p : parameters_) slices.push_back(whole_slice(*p));
    optimizer_ = std::make_unique<Optimizer>(stream_, config, slices);
  }

  void train(int count = steps) {
    for (int i = 0; i < count; ++i, ++step_) {
      for (const auto& p : parameters_)
        ops::encode_stored(stream_, tensor_of(stream_, values_of(format("{}.{}", p->path, step_), p->shape.count()), p->shape),
                           p->gradient.stored());
      optimizer_->step(stream_, rate, zero_, {});
    }
  }
  /// The largest distance from the reference.
  double error() {
    double most = 0;
    for (const Golden& g : golden_)
      for (const auto& p : parameters_)
        if (p->path == g.name)
          for (const auto& [i, wanted] : g.samples) most = std::max(most, std::fabs(ops::value_at(p->value, i) - wanted));
    return most;
  }
  Optimizer& optimizer() { return *optimizer_; }
  Stream& stream() { return stream_; }
  const std::vector<std::unique_ptr<Parameter>>& parameters() const { return parameters_; }
  const Tensor& loss() const { return zero_; }

 private:
  void add(const std::string& name, const Shape& listed, const StateStorage& is) {
    const bool joined = name == "gate_up";  // rows of several matrices, one below the other
    const Shape shape = joined ? Shape{listed[0] * listed[1], listed[2]} : listed;
    Parameter& p = *parameters_.emplace_back(std::make_unique<Parameter>(name, shape));
    if (joined) p.matrices = listed[0];
    const auto stored = [&](Storage s) {
      return Stored{.codes = stream_.zeros(shape, code_type(s), Lifetime::run),
                    .scales = has_scales(s) ? stream_.zeros(scales_shape(s, shape.count()), scales_type(s), Lifetime::run) : Tensor{},
                    .storage = s};
    };
    p.value = stored(is.master);
    ops::encode_stored(stream_, tensor_of(stream_, values_of(name, shape.count()), shape), p.value);
    p.gradient.bind(stored(is.gradients), stream_.zeros({2}, DType::i64, Lifetime::run));
  }

  std::vector<Golden> golden_ = read_golden();
  Stream stream_;
  Tensor zero_;
  std::vector<std::unique_ptr<Parameter>> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  int step_ = 0;
};

TEST(Muon, OrthogonalizesAsTheReferenceInDoublePrecision) {
  const Golden g = read_golden().front();
  for (const auto& [compute, bound] : {std::pair{DType::f32, 2e-5}, std::pair{DType::bf16, 0.05}}) {
    Stream s(Device::cpu);
    const Tensor x = tensor_of(s, values_of(g.name, g.shape.count()), g.shape), out = s.empty(g.shape, DType::f32);
    newton_schulz(s, x, out, compute);
    for (const auto& [i, wanted] : g.samples) EXPECT_NEAR(out.f32()[i], wanted, bound) << i << (compute == DType::f32 ? " f32" : " bf16");
  }
}

TEST(Muon, OrthogonalizesAMatrixOfZerosToZeros) {
  Stream s(Device::cpu);
  const Tensor x = s.zeros({3, 5}, DType::f32), out = testing::gaussian_tensor(s, {3, 5}, 1);
  newton_schulz(s, x, out, DType::f32);
  for (int i = 0; i < 15; ++i) EXPECT_EQ(out.f32()[i], 0);
}

TEST(Muon, TrainsTwentyStepsAsTheReferenceInDoublePrecision) {
  Training run({.gemm_compute = DType::f32});
  EXPECT_GT(run.error(), 0.02) << "the steps must move the weights";
  run.train();
  EXPECT_LT(run.error(), 1e-5);
}

// A step moves an element by rate x 0.18 at its root mean square, so 20 steps by up to 0.07.
TEST(Muon, TrainsNearTheReferenceWithProductsInBf16) {
  if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "oneDNN has no BF16 products without AVX-512";
  Training products({.gemm_compute = DType::bf16});
  products.train();
  EXPECT_LT(products.error(), 2e-3);
}

TEST(Muon, TrainsNearTheReferenceWithNarrowStates) {
  for (const Storage m : {Storage::bf16, Storage::e4m3, Storage::e4m3_expanded}) {
    Training run({.gemm_compute = DType::f32}, {.m = m});
    run.train();
    EXPECT_LT(run.error(), m == Storage::bf16 ? 1e-3 : 1e-2) << name(m);
  }
  Training narrow({.gemm_compute = DType::f32}, {.level = Level::O3});
  narrow.train();
  EXPECT_LT(narrow.error(), 2e-2);
}

TEST(Muon, SkippedStepChangesNoBit) {
  Training run({.gemm_compute = DType::f32}, {.m = Storage::e4m3});
  run.train(2);
  const auto bits = [&] {
    std::vector<std::uint8_t> all;
    for (const auto& p : run.parameters())
      for (const std::uint8_t b : testing::bytes(p->value.codes)) all.push_back(b);
    for (const Optimizer::State& s : run.optimizer().states())
      for (const std::uint8_t b : testing::bytes(s.stored.codes)) all.push_back(b);
    return all;
  };
  const auto before = bits();
  run.parameters().front()->gradient.stored().codes.f32()[3] = NAN;
  run.optimizer().step(run.stream(), rate, run.loss(), {});
  EXPECT_NE(run.optimizer().last(run.stream()).skip, 0);
  EXPECT_EQ(bits(), before);
}

TEST(Muon, LeavesVectorsAndTablesToAdamW) {
  Stream s(Device::cpu);
  Parameter norm("norm", {8}, {}, ParameterRole::vector), table("embedding", {8, 4}), matrix("weight", {8, 4});
  norm.gradient.add_use(GradientUse::sum), table.gradient.add_use(GradientUse::sum), matrix.gradient.add_use(GradientUse::product);
  EXPECT_FALSE(takes_muon(norm));
  EXPECT_FALSE(takes_muon(table));
  EXPECT_TRUE(takes_muon(matrix));
  std::vector<ParameterSlice> slices;
  for (Parameter* p : {&norm, &table, &matrix}) {
    p->value = Stored::plain(s.zeros(p->shape, DType::f32, Lifetime::run));
    p->gradient.bind(Stored::plain(s.zeros(p->shape, DType::f32, Lifetime::run)));
    slices.push_back(whole_slice(*p));
  }
  const Optimizer optimizer(s, {.name = "muon"}, slices);
  std::vector<std::string> names;
  for (const Optimizer::State& state : optimizer.states()) names.push_back(state.name);
  EXPECT_EQ(names, (std::vector<std::string>{"weight.m", "norm.m", "norm.v", "embedding.m", "embedding.v"}));
}

TEST(Muon, RefusesAPartOfAMatrix) {
  Stream s(Device::null);
  Parameter p("weight", {256, 4});
  p.value = Stored::plain(s.empty({512}, DType::f32));
  p.gradient.bind(Stored::plain(s.empty({256, 4}, DType::f32)));
  EXPECT_THROW(Optimizer(s, {.name = "muon"}, {{.parameter = &p, .value = p.value, .gradient = p.value}}), ContractError);
}

}  // namespace
}  // namespace octet::optim
