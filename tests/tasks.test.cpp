#include <gtest/gtest.h>

#include "octet/base/text.hpp"
#include "octet/json/fields.hpp"
#include "octet/train/step/golden.testing.hpp"
#include "tests/testing/octet.hpp"

// `octet eval --task` against lm-evaluation-harness with transformers: tests/golden/tasks.jsonl, which tests/peers/tasks.py made.

namespace octet {
namespace {

using testing::Ended, testing::Scratch;

/// The model and the questions of the golden file, in a folder, with one tokenizer after the other.
class Tasks : public ::testing::Test {
 protected:
  void SetUp() override {
    std::istringstream file(testing::bytes_of(OCTET_SOURCE_DIR "/tests/golden/tasks.jsonl"));
    for (std::string line; std::getline(file, line);) lines_.push_back(json::parse({.text = line, .file = "tasks.jsonl"}));
    ASSERT_GT(lines_.size(), 4u);
    const json::Fields model(lines_.front(), "tasks.jsonl");
    largest_logit_ = model.number("largest_logit", 0, 1e9);
    train::testing::Golden golden{.config = lines_.front().find("config")->dump()};
    for (const json::Member& tensor : *lines_.front().find("tensors")->object())
      golden.gradients.push_back({.name = tensor.name, .shape = shape_of(tensor.value)});
    train::testing::write_model(scratch_, golden);
  }

  static std::vector<std::int64_t> shape_of(const json::Value& value) {
    std::vector<std::int64_t> out;
    for (const json::Value& n : *value.array()) out.push_back(*n.integer());
    return out;
  }
  void write_tokenizer(const json::Value& kind) const {
    json::Value tokenizer = *lines_.front().find("tokenizer");
    for (const json::Member& key : *kind.find("tokenizer")->object()) tokenizer.set(key.name, key.value);
    scratch_.write("model/tokenizer.json", tokenizer.dump());
    scratch_.write("model/tokenizer_config.json", kind.find("tokenizer_config")->dump());
  }
  void write_questions(const json::Value& task) const {
    std::string text;
    for (const json::Value& q : *task.find("questions")->array()) text += q.dump() + "\n";
    scratch_.write(*task.find("task")->text() + ".jsonl", text);
  }
  void expect_answers(const std::string& task, const json::Array& wanted) const;

  std::vector<json::Value> lines_;
  double largest_logit_ = 0;
  Scratch scratch_;
};

/// Logits are within 1e-5 of the largest one (golden.test.cpp); the logarithm of a probability has two of their errors, and a choice has at
/// most as many tokens as the context of 160. The file has six decimals.
void Tasks::expect_answers(const std::string& task, const json::Array& wanted) const {
  std::istringstream answers(testing::bytes_of(scratch_.at("answers.jsonl")));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    std::string line;
    ASSERT_TRUE(std::getline(answers, line)) << task << " " << i;
    const json::Value answer = json::parse({.text = line, .file = "answers.jsonl"});
    const json::Array &ours = *answer.find("log_likelihoods")->array(), &theirs = *wanted[i].array();
    ASSERT_EQ(ours.size(), theirs.size());
    for (std::size_t c = 0; c < ours.size(); ++c)
      EXPECT_NEAR(*ours[c].real(), *theirs[c].real(), 1e-6 + 160 * 2e-5 * largest_logit_) << task << " " << i << " " << c;
  }
}

TEST_F(Tasks, HaveTheLikelihoodsAndTheSharesOfLmEvaluationHarness) {
  int kinds = 0;
  for (const json::Value& line : lines_) {
    if (line.find("kind") != nullptr) write_tokenizer(line), ++kinds;
    if (line.find("task") == nullptr) continue;
    const std::string task = *line.find("task")->text();
    if (line.find("questions") != nullptr) write_questions(line);
    const Ended ended = testing::run_octet(
        "eval model --task " + task + ".jsonl --recipe fp32 --device cpu --threads 1 --answers answers.jsonl", scratch_.folder());
    ASSERT_EQ(ended.code, 0) << ended.err;
    const json::Array& shares = *line.find("shares")->array();
    const auto shown = [&](std::size_t i) { return fixed(shares[i].real() ? *shares[i].real() : double(*shares[i].integer()), 4); };
    EXPECT_TRUE(testing::has(ended.out, "acc " + shown(0) + " +- ") && testing::has(ended.out, "acc_norm " + shown(1) + " +- "))
        << ended.out << shown(0) << " " << shown(1);
    expect_answers(task, *line.find("log_likelihoods")->array());
  }
  EXPECT_EQ(kinds, 3);
}

}  // namespace
}  // namespace octet
