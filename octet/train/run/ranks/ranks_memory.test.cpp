#include <gtest/gtest.h>

#include "octet/comm/dry_run/dry_run.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/small_model.testing.hpp"

// Memory of one of several ranks by the arena, of a run that is not there.

namespace octet::train {
namespace {

using optim::Level;

// Of as large parts at any number of tensor ranks.
EngineConfig config_of(const std::string& recipe, Level level, int ranks, std::int64_t zero, int tensor) {
  EngineConfig config = testing::small_engine("llama", recipe);
  config.shape.width = 512, config.shape.head_dim = 128, config.shape.layers = 48;
  config.shape.heads = 4 * tensor, config.shape.kv_heads = 2 * tensor, config.shape.hidden = 1536 * tensor,
  config.shape.vocabulary = 256 * tensor;
  config.optimizer->level = level, config.ranks.zero = zero, config.planned_ranks = ranks;
  config.ranks.tensor = tensor;
  return config;
}

struct Bytes {
  double weights, gradients, optimizer;
};

/// Numbers of parameters: in matrices of blocks; in other matrices, whose gradients are FP32; in vectors, of which all is FP32.
struct Counts {
  double blocks = 0, others = 0, vectors = 0;
};

/// `copy`: bytes of a value of a block's matrix as ranks read it.
Bytes formula(Level level, double ranks, std::int64_t zero, const Counts& n, double copy) {
  const optim::StateStorage is = optim::storage_of(level);
  const auto size = [](Storage s) { return double(size_of(code_type(s))); };
  const double all = n.blocks + n.others, masters = size(is.master), moments = size(is.m) + size(is.v);
  Bytes out{
      .weights = masters * all, .gradients = size(is.gradients) * n.blocks + 4 * n.others, .optimizer = moments * all + 8 * n.vectors};
  if (zero >= 1) out.weights = copy * n.blocks + 2 * n.others + masters * all / ranks, out.optimizer /= ranks;
  if (zero >= 2) out.gradients -= size(is.gradients) * n.blocks * (1 - 1 / ranks);
  if (zero >= 3) out.weights -= copy * n.blocks * (1 - 1 / ranks);
  out.weights += 4 * n.vectors, out.gradients += 4 * n.vectors;
  return out;
}

// Stage, data ranks, tensor ranks.
class MemoryAt : public ::testing::TestWithParam<std::tuple<int, int, int>> {};
INSTANTIATE_TEST_SUITE_P(Ranks, MemoryAt,
                         ::testing::Combine(::testing::Values(0, 1, 2, 3), ::testing::Values(2, 8, 64), ::testing::Values(1, 2)),
                         [](const auto& info) {
                           return format("Stage{}On{}x{}Ranks", std::get<0>(info.param), std::get<2>(info.param), std::get<1>(info.param));
                         });

// Scales are up to 0.8% of codes of one byte. Memory that buckets share in turn is that of two blocks: from stage 2 on for the gradients of
// one micro-batch, at stage 3 also for weights. These are codes of one byte, or BF16 where codes cannot be made of parts.
TEST_P(MemoryAt, IsThatOfTheFormulasWithinThreePercent) {
  const auto [zero, ranks, tensor] = GetParam();
  for (const auto& [recipe, level] :
       {std::pair{"current", Level::O0}, {"current", Level::O1}, {"current", Level::O2}, {"current", Level::O3}, {"rowwise", Level::O3}}) {
    const EngineConfig config = config_of(recipe, level, ranks, zero, tensor);
    const double copy = recipe == std::string("current") ? 1 : 2;
    const Target target = machine::machine_target(Device::cpu);
    comm::DryRunCommunicator parts(tensor);
    Engine e(config, Device::null, target, &parts);
    Counts n;
    double block = 0;
    for (const nn::Bucket& b : e.parameters.buckets()) {
      if (b.parameters.front()->role == ParameterRole::vector) n.vectors += double(b.count);
      else if (b.parameters.size() == 1) n.others += double(b.count);
      else n.blocks += double(b.count), block = double(b.count);
    }
    const MemoryPeak memory = dry_run(config, target, 1, 2).memory;
    const auto bytes = [&](Category c) { return double(memory.by_category[std::size_t(c)]); };
    const Bytes wanted = formula(level, ranks, zero, n, copy);
    const double in_turn = zero >= 2 ? 2 * 4 * block : 0, gathered = zero >= 3 ? 2 * copy * block : 0;
    const auto near = [&](double got, double formula, const char* what) {
      EXPECT_NEAR(got, formula, 0.03 * formula) << what << ", level " << int(level) << ", " << recipe;
    };
    near(bytes(Category::weights) - gathered, wanted.weights, "weights");
    near(bytes(Category::gradients) - in_turn, wanted.gradients, "gradients");
    near(bytes(Category::optimizer), wanted.optimizer, "optimizer");
  }
}

// Of a GPU, which reads codes in both orientations. Those of the rows are the copies.
TEST_P(MemoryAt, OfOperandsFromCodesIsTheirTransposeWhereItIsCached) {
  const auto [zero, ranks, tensor] = GetParam();
  const Target gpu{.gemm_compute = DType::bf16, .device = Device::cuda, .multiprocessors = 132};
  for (const char* recipe : {"current", "block128"}) {
    const EngineConfig config = config_of(recipe, Level::O0, ranks, zero, tensor);
    comm::DryRunCommunicator parts(tensor);
    Engine e(config, Device::null, gpu, &parts);
    double blocks = 0;
    for (const nn::Bucket& b : e.parameters.buckets()) blocks += b.block >= 0 ? double(b.count) : 0;
    const double operands = double(dry_run(config, gpu, 1, 2).memory.by_category[std::size_t(Category::weight_operands)]);
    const double head = 2 * 512 * 256, wanted = zero == 0 ? 2 * blocks + head : zero < 3 ? blocks : 0;  // a head of FP32 is read in BF16
    EXPECT_NEAR(operands, wanted, zero == 3 ? 2 * blocks / 48 : 0.03 * wanted) << recipe;
  }
}

}  // namespace
}  // namespace octet::train
