#include "octet/train/run/config/corpus.hpp"

#include <gtest/gtest.h>

#include "octet/data/corpus.testing.hpp"

namespace octet::train {
namespace {

using namespace octet::data;

struct TwoFolders : ::testing::Test {
  Scratch training, evaluation;
  const std::vector<std::string> texts = some_texts(30), others = some_texts(8, 40);
  DataConfig config;
  TwoFolders() {
    config.path = make_dataset(training, texts), config.eval_path = make_dataset(evaluation, others);
    config.sequence_length = 10;
  }
};

TEST_F(TwoFolders, WithAnEvaluationSetARunTrainsOnAllDocumentsAndEvaluatesAllOfTheSet) {
  const Corpus corpus(config, {.eval_tokens = 0}, 257);
  EXPECT_EQ(corpus.training().count(), (stream_of(texts).size() - 1) / 10);
  const auto held_out = corpus.held_out(3);
  ASSERT_TRUE(held_out);
  std::vector<std::int32_t> read;
  for (std::uint64_t b = 0; b < held_out->size(); ++b)
    for (const std::int32_t token : (*held_out)[b].inputs) read.push_back(token);
  std::vector<std::int32_t> wanted = stream_of(others);
  wanted.resize((wanted.size() - 1) / 10 * 10);
  EXPECT_EQ(read, wanted);
}

TEST_F(TwoFolders, ATextOfAMixtureIsTrainedOnByItsShareAndNeedsTheSameTokenizer) {
  const std::string second = config.eval_path;
  config.mix = {second + ":0.25"}, config.eval_path.clear();
  const Corpus mixed(config, {}, 257);
  std::size_t of_second = 0;
  for (std::uint64_t sample = 0; sample < 400; ++sample) of_second += mixed.training().place(sample, 1).text;
  EXPECT_EQ(of_second, 100u);
  config.mix = {second + ":0.5"};
  EXPECT_NE(Corpus(config, {}, 257).fingerprint(), mixed.fingerprint()) << "a resumed run has the same shares";
  config.mix = {"nowhere:0.5"};
  EXPECT_TRUE(has(error_of<ConfigError>([&] { Corpus(config, {}, 257); }), "data.mix: there is no folder 'nowhere'"));
  config.mix = {"nowhere"};
  EXPECT_TRUE(has(error_of<ConfigError>([&] { Corpus(config, {}, 257); }), "data.mix: \"nowhere\" must be PATH:SHARE"));
}

TEST_F(TwoFolders, BothPartsMaskDocumentsOrNeither) {
  for (const bool mask : {false, true}) {
    config.document_mask = mask;
    const Corpus corpus(config, {}, 257);
    EXPECT_EQ(corpus.training().documents(), config.documents());
    EXPECT_EQ((*corpus.held_out(1))[0].document_mask, mask);
  }
}

TEST_F(TwoFolders, AnEvaluationSetThatDoesNotFitIsRefusedByItsOwnKey) {
  const auto refusal = [&](const std::string& folder, std::int64_t vocabulary = 257) {
    DataConfig bad = config;
    bad.eval_path = folder;
    return error_of<ConfigError>([&] { Corpus(bad, {}, vocabulary); });
  };
  EXPECT_TRUE(has(refusal("nowhere"), "data.eval_path: there is no folder 'nowhere'"));
  EXPECT_TRUE(has(refusal(evaluation.at("text")), "data.eval_path: '" + evaluation.at("text") + "' is a folder of other files"));
  EXPECT_TRUE(has(refusal(shard_path(config.eval_path, 0)), "data.eval_path: '"));
  EXPECT_TRUE(has(refusal(config.eval_path, 200), "data.path: '"));
}

}  // namespace
}  // namespace octet::train
