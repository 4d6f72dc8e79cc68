#include <gtest/gtest.h>

#include <cmath>

#include "octet/ops/attention/documents.testing.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/step/small_model.testing.hpp"

// Packed documents against each document alone in a sequence of its own.

namespace octet::train {
namespace {

using testing::begin_steps, testing::random_batch, testing::small_engine;

constexpr std::int64_t rows = 3, length = 32, tokens = rows * length;

// A batch with documents, as Windows makes them: nobody predicts the first token of one.
data::Batch packed_batch(std::uint64_t seed) {
  data::Batch b = random_batch(rows, length, 61, seed);
  b.document_mask = true, b.document_starts = ops::random_document_starts(tokens, length, 6, seed);
  for (std::int64_t t = 0; t < tokens; ++t)
    if ((t + 1) % length != 0 && b.document_starts[std::size_t(t + 1)] == (t + 1) % length) b.targets[std::size_t(t)] = -1;
  return b;
}

// Each document of a packed batch as a batch of one row.
std::vector<data::Batch> documents_of(const data::Batch& packed) {
  std::vector<data::Batch> out;
  for (std::int64_t t = 0; t < tokens; ++t) {
    if (packed.document_starts[std::size_t(t)] == t % length) {
      out.emplace_back();
      out.back().rows = 1, out.back().length = 0;
    }
    ++out.back().length;
    out.back().inputs.push_back(packed.inputs[std::size_t(t)]), out.back().targets.push_back(packed.targets[std::size_t(t)]);
  }
  return out;
}

std::int64_t targets_of(const data::Batch& b) {
  return std::count_if(b.targets.begin(), b.targets.end(), [](std::int32_t t) { return t >= 0; });
}

EngineConfig masked(EngineConfig config) {
  config.document_mask = true;
  return config;
}

struct Result {
  double loss, norm;
  std::vector<float> gradients;
};
Result step(const EngineConfig& config, const std::vector<data::Batch>& batches) {
  Engine e(config, Device::cpu, machine::machine_target(Device::cpu));
  Result r;
  begin_steps(e).run(batches, {.learning_rate = 1e-3}, [&] {
    r = {double(*e.mean_loss().f32()), e.optimizer->last(e.stream).gradient_norm, nn::flat_values(e.stream, e.parameters.gradients())};
  });
  return r;
}

double norm(const std::vector<float>& x) {
  double squares = 0;
  for (const float v : x) squares += double(v) * double(v);
  return std::sqrt(squares);
}

// Rounding of sums over tokens, in as many GEMMs as lie between the loss and the first weight: the bound of Step.FourMicroBatches....
constexpr double gamma = double(tokens) * 0x1p-24 * 16;

class DocumentMask : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Families, DocumentMask, ::testing::Values("llama", "qwen2", "gpt2"));

TEST_P(DocumentMask, PackedDocumentsHaveLossAndGradientOfEachAlone) {
  for (const nn::Recompute& recompute : {nn::Recompute{}, nn::Recompute{.block = true}}) {
    const EngineConfig config = small_engine(GetParam(), "fp32", recompute);
    const data::Batch packed = packed_batch(3);
    const Result together = step(masked(config), {packed}), alone = step(config, documents_of(packed));
    ASSERT_GT(documents_of(packed).size(), 10u);
    EXPECT_NEAR(together.loss, alone.loss, gamma * alone.loss);
    ASSERT_EQ(together.gradients.size(), alone.gradients.size());
    std::vector<float> difference = alone.gradients;
    for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= together.gradients[i];
    EXPECT_LE(norm(difference), gamma * norm(alone.gradients));
    // Stored gradients are divided by all tokens, the optimizer's by the targets.
    const double per_target = norm(together.gradients) * double(tokens) / double(targets_of(packed));
    EXPECT_NEAR(together.norm, per_target, gamma * per_target);
    // The mask matters.
    data::Batch joined = packed;
    joined.document_mask = false;
    EXPECT_GT(std::abs(step(config, {joined}).loss - together.loss), 10 * gamma * alone.loss);
  }
}

TEST_P(DocumentMask, TheLastTokenOfAPackedDocumentHasTheLogitsOfTheDocumentAlone) {
  Engine e(masked(small_engine(GetParam(), "fp32")), Device::cpu, machine::machine_target(Device::cpu));
  e.parameters.initialize(e.stream, 7);
  const data::Batch packed = packed_batch(4);
  const auto logits = [&](std::int64_t begin, std::int64_t end, bool mask) {
    const Scope scope(e.stream);
    data::Batch b;
    b.rows = 1, b.length = end - begin, b.document_mask = mask;
    const auto part = [&](const std::vector<std::int32_t>& x) { return std::vector<std::int32_t>(x.begin() + begin, x.begin() + end); };
    b.inputs = part(packed.inputs), b.targets = part(packed.targets);
    if (mask) b.document_starts = part(packed.document_starts);
    const Tensor out = e.stream.empty({1, e.model->shape().padded_vocabulary()}, DType::f32);
    e.model->last_logits(e.stream, upload(e.stream, b, Lifetime::scratch), {}, out);
    return std::vector<float>(out.f32(), out.f32() + e.model->shape().vocabulary);
  };
  for (std::int64_t t = 0; t < length; ++t) {
    const std::vector<float> together = logits(0, t + 1, true), alone = logits(packed.document_starts[std::size_t(t)], t + 1, false);
    std::vector<float> difference = alone;
    for (std::size_t i = 0; i < alone.size(); ++i) difference[i] -= together[i];
    EXPECT_LE(norm(difference), gamma * norm(alone)) << t;
  }
}

TEST_P(DocumentMask, EvaluationOfPackedDocumentsCountsTheirTargetsOnly) {
  Engine e(masked(small_engine(GetParam(), "fp32")), Device::cpu, machine::machine_target(Device::cpu));
  e.parameters.initialize(e.stream, 7);
  const data::Batch packed = packed_batch(5);
  double sum = 0;
  for (const data::Batch& document : documents_of(packed)) {
    const Evaluation one = evaluate_batch(e, document);
    sum += one.loss * double(one.tokens);
  }
  const Evaluation all = evaluate_batch(e, packed);
  EXPECT_EQ(all.tokens, targets_of(packed));
  EXPECT_NEAR(all.loss, sum / double(all.tokens), gamma * all.loss);
}

TEST(MaskedDocuments, ADryRunNeedsTheSameMemory) {
  for (const char* family : {"llama", "gpt2"}) {
    const EngineConfig config = masked(small_engine(family, "current"));
    Engine e(config, Device::cpu, {});
    StepRunner runner = begin_steps(e);
    runner.run(std::vector{packed_batch(6), packed_batch(7)}, {.learning_rate = 1e-3, .measure = true});
    evaluate_batch(e, packed_batch(8));
    EXPECT_EQ(dry_run(config, {}, rows, 2).memory.total, e.stream.arena().peak().total) << family;
  }
}

}  // namespace
}  // namespace octet::train
