#include "octet/data/conversation.hpp"

#include <gtest/gtest.h>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/data/corpus.testing.hpp"
#include "octet/data/dataset.hpp"
#include "octet/data/eval_batches.hpp"
#include "octet/data/pair_rows.hpp"
#include "octet/data/pairs.testing.hpp"
#include "octet/data/tokenize.hpp"
#include "octet/data/windows.hpp"
#include "octet/data/token_format.hpp"
#include "octet/tokenizer/byte_tokenizer.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::data {
namespace {

using tokenizer::Message;

std::string text_of(const std::string& line) {
  std::string out;
  for (const Message& m : conversation_of(line, "c.jsonl:3")) out += m.role + ":" + m.content + "|";
  return out;
}

TEST(Conversation, HasTheSameMessagesInEveryForm) {
  const std::string wanted = "user:q|assistant:a|";
  EXPECT_EQ(text_of(R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a", "tool_calls": []}]})"),
            wanted);
  EXPECT_EQ(text_of(R"({"id": 1, "conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]})"), wanted);
  EXPECT_EQ(text_of(R"({"prompt": "q", "completion": "a"})"), wanted);
  EXPECT_EQ(text_of(R"({"prompt": [{"role": "user", "content": "q"}], "completion": [{"role": "assistant", "content": "a"}]})"), wanted);
  EXPECT_EQ(text_of(R"({"instruction": "q", "input": "", "output": "a"})"), wanted);
  EXPECT_EQ(text_of(R"({"instruction": "q", "input": "i", "output": "a"})"), "user:q\n\ni|assistant:a|");
  EXPECT_EQ(text_of(R"({"system": "s", "conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]})"),
            "system:s|" + wanted);
}

TEST(Conversation, ABadLineIsRefusedByFileAndLine) {
  for (const char* line :
       {R"({"text": "x"})", R"({"messages": []})", R"({"messages": [{"role": "user", "content": "q"}]})",
        R"({"messages": [{"role": "tool", "content": "q"}, {"role": "assistant", "content": "a"}]})",
        R"({"messages": [{"role": "assistant", "content": "a", "tool_calls": [{}]}]})",
        R"({"messages": [{"role": "assistant", "content": [{"type": "text", "text": "a"}]}]})", R"({"messages": "x"})", "[]", "{"})
    try {
      conversation_of(line, "c.jsonl:3");
      FAIL() << line;
    } catch (const DataError& e) {
      EXPECT_EQ(std::string(e.what()).find("c.jsonl:3"), 0u) << e.what();
    }
}

TEST(Conversation, MarksAllIdsBesidesAnswers) {
  std::vector<std::int32_t> ids;
  const tokenizer::ByteTokenizer bytes;
  EXPECT_EQ(encode_conversation(bytes, {{"ab", false}, {"cd", true}, {"e", false}, {"f", true}}, ids), 6u);
  std::string shown;
  for (const std::int32_t id : ids) shown += id < 0 ? '.' : char(id);
  EXPECT_EQ(shown, "..cd.f");
  EXPECT_EQ(std::uint32_t(ids[0]), context_mark | 'a');
}

// Targets of a packed window: answers alone, and never the first token of a conversation.
TEST(Conversation, WindowsHaveAnswersAsTargets) {
  const octet::testing::Scratch scratch;
  scratch.write("chat.jsonl", "{\"prompt\": \"q\", \"completion\": \"one\"}\n{\"prompt\": \"r\", \"completion\": \"two\"}\n");
  const tokenizer::ChatForm form = [](const std::vector<Message>& messages) {
    std::vector<tokenizer::ChatSpan> parts;
    for (const Message& m : messages)
      parts.push_back({"<" + m.role + ">", false}), parts.push_back({m.content + ".", m.role == "assistant"});
    return parts;
  };
  tokenize({scratch.at("chat.jsonl")}, scratch.at("out"), {.chat = form});
  const Dataset dataset(scratch.at("out"));
  EXPECT_TRUE(dataset.marks_context());
  EXPECT_EQ(dataset.document_count(), 2u);
  const std::string text = "<user>q.<assistant>one.<user>r.<assistant>two.";
  ASSERT_EQ(dataset.token_count(), text.size());
  EXPECT_THROW(Windows(dataset, {{0, text.size()}}, 16, "training"), ConfigError);
  const Windows windows(dataset, {{0, text.size()}}, std::int64_t(text.size()) - 1, "training", Documents::masked);
  Batch batch;
  batch.rows = 1, batch.length = windows.length(), batch.document_mask = true;
  batch.resize();
  windows.read(0, batch, 0);
  std::string inputs, targets;
  for (const std::int32_t id : batch.inputs) inputs += char(id);
  for (const std::int32_t id : batch.targets) targets += id < 0 ? "" : std::string(1, char(id));
  EXPECT_EQ(inputs, text.substr(0, text.size() - 1));
  EXPECT_EQ(targets, "one.two.");
  require_targets(EvalBatches(windows, 1, 0), dataset, "held-out");
  const Windows question(dataset, {{0, 19}}, 18, "held-out", Documents::masked);  // "<user>q.<assistant>"
  EXPECT_THROW(require_targets(EvalBatches(question, 1, 0), dataset, "held-out"), ConfigError) << "no window has an answer";
}

std::string pair_text(const std::string& line) {
  const AnswerPair p = answer_pair_of(line, "p.jsonl:3");
  std::string out;
  for (const auto* side : {&p.question, &p.chosen, &p.rejected}) {
    for (const Message& m : *side) out += m.role + ":" + m.content + " ";
    out += "| ";
  }
  return out;
}

TEST(AnswerPair, HasTheSameMessagesInEveryForm) {
  const std::string wanted = "user:q | assistant:a | assistant:b | ", with_system = "system:s " + wanted;
  const std::string q = R"({"role": "user", "content": "q"})", a = R"({"role": "assistant", "content": "a"})",
                    b = R"({"role": "assistant", "content": "b"})", s = R"({"role": "system", "content": "s"})";
  EXPECT_EQ(pair_text(R"({"prompt": "q", "chosen": "a", "rejected": "b"})"), wanted);
  const auto list = [](const std::vector<std::string>& messages) { return "[" + joined(messages) + "]"; };
  const auto line = [](const std::string& prompt, const std::string& chosen, const std::string& rejected) {
    return "{" + (prompt.empty() ? "" : "\"prompt\": " + prompt + ", ") + "\"chosen\": " + chosen + ", \"rejected\": " + rejected + "}";
  };
  EXPECT_EQ(pair_text(line(list({q}), list({a}), list({b}))), wanted);
  EXPECT_EQ(pair_text(line("\"q\"", list({q, a}), list({q, b}))), wanted);
  EXPECT_EQ(pair_text(line("", list({q, a}), list({q, b}))), wanted);
  EXPECT_EQ(pair_text(line("", list({s, q, a}), list({s, q, b}))), with_system);
  EXPECT_EQ(pair_text(line(list({s, q}), list({q, a}), list({b}))), with_system);
  EXPECT_EQ(pair_text(R"({"system": "s", "prompt": "q", "chosen": "a", "rejected": "b"})"), with_system);
}

TEST(AnswerPair, ABadLineIsRefusedByFileAndLine) {
  for (const auto& [line, says] :
       {std::pair(R"({"prompt": "q", "chosen": "a"})", "it has no \"rejected\""),
        {R"({"prompt": "q", "rejected": "a"})", "no \"chosen\""},
        {R"({"chosen": "a", "rejected": "b"})", "the pair has no question"},
        {R"({"prompt": "q", "chosen": "a", "rejected": "a"})", "are equal, so there is no preference"},
        {R"({"prompt": "q", "chosen": " ", "rejected": "b"})", "chosen must be an answer of the assistant that is not empty"},
        {R"({"prompt": "q", "chosen": "a", "rejected": ""})", "rejected must be an answer of the assistant"},
        {R"({"prompt": "q", "chosen": 7, "rejected": "b"})", "chosen must be"},
        {R"({"prompt": "q", "chosen": [{"role": "user", "content": "x"}], "rejected": "b"})", "chosen must be an answer"},
        {R"({"chosen": [{"role": "user", "content": "x"}], "rejected": [{"role": "user", "content": "y"}]})", "has no question"},
        {"[]", ""}})
    try {
      answer_pair_of(line, "p.jsonl:3");
      FAIL() << line;
    } catch (const DataError& e) {
      EXPECT_EQ(std::string(e.what()).find("p.jsonl:3"), 0u) << e.what();
      EXPECT_TRUE(has(e.what(), says)) << e.what();
    }
}

// "<role>content." of each message.
std::vector<tokenizer::ChatSpan> angled(const std::vector<Message>& messages) {
  std::vector<tokenizer::ChatSpan> parts;
  for (const Message& m : messages) parts.push_back({"<" + m.role + ">", false}), parts.push_back({m.content + ".", m.role == "assistant"});
  return parts;
}

TEST(AnswerPair, AnswersOfTheQuestionAreNoTargets) {
  const AnswerPair pair{{{"user", "q"}, {"assistant", "x"}, {"user", "r"}}, {{"assistant", "a"}}, {{"assistant", "b"}}};
  std::string answers;
  for (const tokenizer::ChatSpan& p : parts_of_answer(angled, pair, pair.rejected)) answers += p.answer ? p.text : "";
  EXPECT_EQ(answers, "b.");
}

std::string text_at(const Batch& b, const std::int32_t* place, const std::vector<std::int32_t>& of) {
  std::string out;
  for (std::int32_t t = place[0]; t < place[1]; ++t) out += of[std::size_t(t)] < 0 ? '_' : char(of[std::size_t(t)]);
  EXPECT_EQ(b.document_starts[std::size_t(place[0])], place[0] % b.length);
  return out;
}

TEST(AnswerPair, RowsHaveBothAnswersOfAPairSideBySideAndLeaveOutLongOnes) {
  const octet::testing::Scratch scratch;
  scratch.write("pairs.jsonl", R"({"prompt": "q", "chosen": "aa", "rejected": "b"})"
                               "\n"
                               R"({"prompt": "long long long long long long long long", "chosen": "a", "rejected": "b"})"
                               "\n"
                               R"({"prompt": "r", "chosen": "c", "rejected": "ddd"})"
                               "\n");
  tokenize({scratch.at("pairs.jsonl")}, scratch.at("out"), {.chat = angled, .pairs = true});
  const Dataset dataset(scratch.at("out"));
  ASSERT_TRUE(dataset.has_pairs());
  const TokenRanges all{{0, dataset.token_count()}};
  const PairRows rows(dataset, all, 100, "training", Documents::masked, 10);
  EXPECT_EQ(rows.count(), 1u);
  EXPECT_EQ(rows.pairs(), 2);
  EXPECT_EQ(rows.too_long(), 1);
  Batch batch = batch_for(rows, 2);
  rows.read(0, batch, 1);
  const std::int32_t* const at = batch.pairs.places.data() + 4 * rows.pairs_per_row();
  EXPECT_EQ(text_at(batch, at, batch.inputs), "<user>q.<assistant>aa");
  EXPECT_EQ(text_at(batch, at, batch.targets), "__________________aa.") << "the answers with their end";
  EXPECT_EQ(text_at(batch, at + 2, batch.targets), "__________________b.");
  EXPECT_EQ(text_at(batch, at + 4, batch.inputs), "<user>r.<assistant>c");
  EXPECT_EQ(text_at(batch, at + 6, batch.targets), "__________________ddd.");
  const std::vector<std::int64_t> numbers(batch.pairs.numbers.begin() + rows.pairs_per_row(), batch.pairs.numbers.end());
  EXPECT_EQ(numbers[0], 10) << "of the run";
  EXPECT_EQ(numbers[1], 12) << "of the run";
  EXPECT_EQ(batch.counted(), 2);
  EXPECT_EQ(batch.targets.back(), -1) << "padding";
  EXPECT_THROW(Windows(dataset, all, 16, "training", Documents::masked), ConfigError);
  EXPECT_THROW(PairRows(dataset, all, 100, "training", Documents::joined), ConfigError);
  EXPECT_THROW(PairRows(dataset, all, 30, "training", Documents::masked), ConfigError);
}

TEST(AnswerPair, BothAnswersAreHeldOutTogether) {
  const octet::testing::Scratch scratch;
  const Dataset dataset(write_pairs(scratch.at("pairs"), random_pairs(40, 200, 1)));
  const Split split = split_documents(dataset, 0.25);
  const PairRows training(dataset, split.train, 64, "training", Documents::masked),
      held_out(dataset, split.held_out, 64, "held-out", Documents::masked);
  EXPECT_EQ(training.pairs(), 30);
  EXPECT_EQ(held_out.pairs(), 10);
  std::vector<int> seen(40);
  for (const PairRows* rows : {&training, &held_out})
    for (std::uint64_t i = 0; i < rows->count(); ++i) {
      Batch batch = batch_for(*rows, 1);
      rows->read(i, batch, 0);
      for (const std::int64_t n : batch.pairs.numbers)
        if (n >= 0) ++seen[std::size_t(n)];
    }
  EXPECT_EQ(seen, std::vector<int>(40, 1));
}

}  // namespace
}  // namespace octet::data
