#include "octet/data/conversation.hpp"

#include <gtest/gtest.h>

#include "octet/base/error.hpp"
#include "octet/data/corpus.testing.hpp"
#include "octet/data/dataset.hpp"
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
    std::vector<tokenizer::ChatPart> parts;
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
}

}  // namespace
}  // namespace octet::data
