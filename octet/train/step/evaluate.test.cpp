#include "octet/train/step/evaluate.hpp"

#include <gtest/gtest.h>

#include "octet/data/dataset.hpp"
#include "octet/data/tokenize.hpp"
#include "octet/train/step/small_model.testing.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::train {
namespace {

// A loss is a sum over the same tokens, in another order: n terms and their sums, in double.
TEST(Evaluation, ReportsTheSameLossWhateverTheMicroBatch) {
  const octet::testing::Scratch scratch;
  std::string text;
  for (int i = 0; text.size() < 5000; ++i) text += format("line {} counts to {}\n", i, i * i);
  scratch.write("text/a.txt", text);
  data::TokenizeOptions options;
  options.threads = 1;
  data::tokenize({scratch.at("text/*.txt")}, scratch.at("data"), options);
  const data::Dataset dataset(scratch.at("data"));
  const data::Windows windows(dataset, data::TokenRanges{{0, dataset.token_count()}}, 32, "held-out");

  EngineConfig config = testing::small_engine("llama", "bf16");
  config.shape.vocabulary = 257;
  Engine e(config, Device::cpu, {});
  e.parameters.initialize(e.stream, 7);
  const Evaluation eight = evaluate(e, data::EvalBatches(windows, 8, 1500)), two = evaluate(e, data::EvalBatches(windows, 2, 1500));
  EXPECT_EQ(eight.tokens, 1504);
  EXPECT_EQ(two.tokens, eight.tokens);
  EXPECT_NEAR(two.loss, eight.loss, 1e-6 * eight.loss);
}

}  // namespace
}  // namespace octet::train
