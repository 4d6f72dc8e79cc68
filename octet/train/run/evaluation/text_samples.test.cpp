#include <gtest/gtest.h>

#include "octet/telemetry/run_record.hpp"
#include "octet/train/run/checkpoints/checkpoint_weights.hpp"
#include "octet/train/run/folder/run_folder.hpp"
#include "octet/train/run/small_runs.testing.hpp"
#include "octet/train/step/generate.hpp"

// Samples of text in real runs: a function of weights, seed and step alone, which changes nothing else.

namespace octet::train {
namespace {
namespace fs = std::filesystem;
using octet::testing::has;
using telemetry::SampleEvent;
using testing::Runs;

struct Sampled : Runs {
  explicit Sampled(const std::string& recipe = "current") : Runs(recipe) {
    config.train.sample_every = 3, config.train.sample_prompt = "once", config.train.sample_tokens = 40;
    config.train.steps = 6, config.train.accumulate = 1;
  }
};

std::vector<std::string> texts_of(const std::string& folder) {
  std::vector<std::string> out;
  for (const SampleEvent& e : telemetry::read_run(folder).samples) out.push_back(format("{} {} {}", e.step, e.end, e.text));
  return out;
}

std::vector<std::string> other_events(const std::string& folder) {
  std::vector<std::string> events = octet::testing::untimed_events(folder);
  std::erase_if(events, [](const std::string& line) { return has(line, "\"event\":\"sample\""); });
  return events;
}

TEST(TextSamples, AreTheSameInEachRunAndAfterAResumeAndChangeNothingElse) {
  Sampled runs("delayed");
  const std::string whole = runs.train().folder, cut = runs.copy_of(whole, "cut");
  const std::vector<std::string> texts = texts_of(whole);
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_EQ(telemetry::read_run(whole).samples.at(0).prompt, "once");
  EXPECT_NE(texts[0].substr(2), texts[1].substr(2));
  EXPECT_EQ(texts_of(runs.train().folder), texts);
  fs::remove_all(CheckpointStore(checkpoint_folder(cut)).path(6));  // 5 remains
  runs.train(cut);
  EXPECT_EQ(texts_of(cut), texts);
  runs.config.train.sample_every = 0;
  const std::string without = runs.train().folder;
  EXPECT_TRUE(texts_of(without).empty());
  EXPECT_EQ(other_events(without), other_events(whole));
  EXPECT_EQ(octet::testing::bytes_of(without + "/weights/model.safetensors"),
            octet::testing::bytes_of(whole + "/weights/model.safetensors"));
}

TEST(TextSamples, AreWordsOfTheFirstRankAlsoWhereWeightsAreDivided) {
  Sampled runs("bf16");
  runs.config.train.sample_temperature = 0;
  std::vector<std::string> first;
  for (const int stage : {0, 3}) {
    runs.config.ranks.zero = stage;
    const std::vector<std::string> texts = texts_of(runs.train_on(2).folder);
    ASSERT_EQ(texts.size(), 2u) << "one rank writes";
    if (first.empty()) first = texts;
    EXPECT_EQ(texts, first);
  }
}

TEST(TextSamples, OfWeightsThatAreNotFiniteSaySo) {
  Engine e(EngineConfig{.shape = Runs().config.model.shape(), .sequence = 32}, Device::cpu, {});
  e.parameters.initialize(e.stream, 7);
  std::vector<std::int32_t> ids = {1, 2};
  int taken = 0;
  const Generation g{.sampling = {.temperature = 0}, .tokens = 3};
  const auto take = [&](std::size_t, std::int32_t) { return ++taken > 0; };
  EXPECT_EQ(generate(e, ids, 2, g, take), GenerationEnd::length);
  EXPECT_EQ(ids.size(), 5u);
  const std::vector<std::int64_t> ends = {ids[2]};
  std::vector<std::int32_t> again = {1, 2};
  EXPECT_EQ(generate(e, again, 2, {.sampling = {.temperature = 0}, .tokens = 3, .ends = ends}, take), GenerationEnd::end_of_text);
  EXPECT_EQ(again.size(), 2u);
  std::vector<float> nothing(std::size_t(e.parameters.list()[0]->value.values().count()), NAN);
  e.parameters.set_values(e.stream, 0, nothing.data());
  EXPECT_EQ(generate(e, ids, 2, g, take), GenerationEnd::not_finite);
  EXPECT_EQ(taken, 3);
}

TEST(TextSamples, WithoutAPromptBeginADocument) {
  Sampled runs;
  runs.config.train.sample_prompt = "";
  EXPECT_EQ(texts_of(runs.train().folder).size(), 2u) << "bytes have a separator";
}

}  // namespace
}  // namespace octet::train
