#include "octet/data/multiple_choice.hpp"

#include <gtest/gtest.h>

#include "octet/base/error.hpp"

// Contexts and choices as lm-evaluation-harness 0.4 makes them of these lines.

namespace octet::data {
namespace {

using Texts = std::vector<std::string>;

TEST(MultipleChoice, OfHellaSwagHasNoMarksAndASecondSentence) {
  const MultipleChoice q = multiple_choice_of(
      R"({"ind": 3, "activity_label": "Baking", "ctx_a": " [header] How to bake [title] Mix it.", "ctx_b": "then The cook",
          "ctx": "unused", "endings": [" [step] stirs  it.", "leaves [substeps] home."], "label": "1"})",
      "h.jsonl:1");
  EXPECT_EQ(q.context, "Baking:  How to bake. Mix it. Then the cook");
  EXPECT_EQ(q.choices, (Texts{" stirs it.", "leaves home."}));
  EXPECT_EQ(q.answer, 1u);
}

TEST(MultipleChoice, OfArcFindsTheAnswerAmongItsLabels) {
  const MultipleChoice q = multiple_choice_of(
      R"({"id": "x", "question": "Why?", "choices": {"text": ["a", "b", "c"], "label": ["1", "2", "3"]}, "answerKey": "3"})", "a.jsonl:1");
  EXPECT_EQ(q.context, "Question: Why?\nAnswer:");
  EXPECT_EQ(q.choices, (Texts{"a", "b", "c"}));
  EXPECT_EQ(q.answer, 2u);
}

TEST(MultipleChoice, OfMmluShowsTheChoicesAndAsksForTheirLetter) {
  const MultipleChoice q = multiple_choice_of(
      R"({"question": " How many? ", "subject": "high_school_physics", "choices": ["one", "two", "three", "four"], "answer": 1})", "m:1");
  EXPECT_EQ(q.context,
            "The following are multiple choice questions (with answers) about high school physics.\n\nHow many?\nA. one\nB. two\nC. "
            "three\nD. four\nAnswer:");
  EXPECT_EQ(q.choices, (Texts{"A", "B", "C", "D"}));
  EXPECT_EQ(q.answer, 1u);
}

TEST(MultipleChoice, OfAnotherTaskIsShownAsItIs) {
  const MultipleChoice q = multiple_choice_of(R"({"context": " x [a]", "choices": ["é", " y"], "answer": 0})", "p:1");
  EXPECT_EQ(q.context, " x [a]");
  EXPECT_EQ(q.choices, (Texts{"é", " y"}));
}

std::string refusal(const std::string& line) {
  try {
    multiple_choice_of(line, "q.jsonl:7");
  } catch (const DataError& e) {
    return e.what();
  }
  return "";
}

TEST(MultipleChoice, ABadLineIsRefusedByFileAndLine) {
  EXPECT_NE(refusal("{\"text\": \"x\"}").find("q.jsonl:7: it is no question of HellaSwag"), std::string::npos);
  EXPECT_NE(refusal("[1]").find("q.jsonl:7"), std::string::npos);
  for (const char* line : {R"({"context": "x", "choices": ["a", "b"], "answer": 2})", R"({"context": "x", "choices": ["a", "b"]})",
                           R"({"context": "x", "choices": ["a"], "answer": 0})", R"({"context": "x", "choices": ["a", ""], "answer": 0})",
                           R"({"question": "x", "choices": {"text": ["a", "b"], "label": ["A"]}, "answerKey": "A"})",
                           R"({"question": "x", "choices": {"text": ["a", "b"], "label": ["A", "B"]}, "answerKey": "C"})",
                           R"({"activity_label": "x", "ctx_a": "a", "ctx_b": "b", "endings": ["c", "d"], "label": ""})"})
    EXPECT_NE(refusal(line).find("q.jsonl:7: "), std::string::npos) << line;
}

}  // namespace
}  // namespace octet::data
