#include "octet/train/step/evaluate.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "octet/data/dataset.hpp"
#include "octet/data/tokenize.hpp"
#include "octet/train/step/small_model.testing.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::train {
namespace {

class Evaluations : public ::testing::Test {
 protected:
  Evaluations() {
    std::string text;
    for (int i = 0; text.size() < 5000; ++i) text += format("line {} counts to {}\n", i, i * i);
    scratch_.write("text/a.txt", text);
    data::TokenizeOptions options;
    options.threads = 1;
    data::tokenize({scratch_.at("text/*.txt")}, scratch_.at("data"), options);
    dataset_.emplace(scratch_.at("data"));
    windows_.emplace(*dataset_, data::TokenRanges{{0, dataset_->token_count()}}, 32, "held-out");
  }

  static EngineConfig config(const std::string& recipe) {
    EngineConfig out = testing::small_engine("llama", recipe);
    out.shape.vocabulary = 257;
    return out;
  }
  data::EvalBatches batches(std::int64_t size) const { return {*windows_, size, 1500}; }

 private:
  octet::testing::Scratch scratch_;
  std::optional<data::Dataset> dataset_;
  std::optional<data::Windows> windows_;
};

// A loss is a sum over the same tokens, in another order: n terms and their sums, in double.
TEST_F(Evaluations, ReportTheSameLossWhateverTheMicroBatch) {
  Engine e(config("bf16"), Device::cpu, {});
  e.parameters.initialize(e.stream, 7);
  const Evaluation eight = evaluate(e, batches(8)), two = evaluate(e, batches(2));
  EXPECT_EQ(eight.tokens, 1504);
  EXPECT_EQ(two.tokens, eight.tokens);
  EXPECT_NEAR(two.loss, eight.loss, 1e-6 * eight.loss);
}

// Under one scale for outliers of 1e5, the weights become 0, and so do the values that they compute: a scale from that batch alone would be
// larger again, and the loss would depend on the number of batches.
TEST_F(Evaluations, CalibrateOneScaleByTheLargestMaximaOfAllBatches) {
  std::vector<double> losses;
  for (const std::uint64_t count : {2, 3, 4, 5}) {
    EngineConfig c = config("global");
    c.model.quantize_residual = true;
    Engine e(c, Device::cpu, {});
    e.parameters.initialize(e.stream, 7);
    for (Parameter* p : e.parameters.list())
      if (p->path.ends_with("norm1.weight")) *p->value.values().f32() = 1e5f;
    calibrate(e, batches(8), count);
    losses.push_back(evaluate(e, batches(8)).loss);
  }
  for (const double loss : losses) EXPECT_NEAR(loss, losses[0], 1e-3 * losses[0]);
}

}  // namespace
}  // namespace octet::train
