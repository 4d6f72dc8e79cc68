#include "octet/models/chat_template.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "octet/base/error.hpp"
#include "octet/json/fields.hpp"

// Against tests/golden/chat.jsonl, which tests/peers/chat.py made of the models' own templates.

namespace octet::models {
namespace {

using tokenizer::ChatSpan;
using tokenizer::Message;

constexpr const char* begin = "<|begin_of_text|>";

std::string text_of(const std::vector<ChatSpan>& parts) {
  std::string out;
  for (const ChatSpan& p : parts) out += p.text;
  return out;
}

TEST(ChatTemplate, WritesWhatTheModelsOwnTemplatesWrite) {
  std::ifstream file(std::string(OCTET_SOURCE_DIR) + "/tests/golden/chat.jsonl");
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    const json::Value value = json::parse({.text = line, .file = "chat.jsonl"});
    const json::Fields fields(value, "chat.jsonl");
    std::vector<Message> messages;
    for (const json::Fields& m : fields.objects("messages")) messages.push_back({m.text("role"), m.text("content")});
    const std::vector<ChatSpan> parts = ChatTemplate::named(fields.text("template"), begin).render(messages);
    EXPECT_EQ(text_of(parts), fields.text("text")) << fields.text("template");
    std::size_t answers = 0, wanted = 0;
    for (const ChatSpan& p : parts) answers += p.answer;
    for (const Message& m : messages) wanted += m.role == "assistant";
    EXPECT_EQ(answers, wanted);
  }
  EXPECT_EQ(lines, 78);
}

TEST(ChatTemplate, AQuestionIsTheTextBeforeItsAnswer) {
  std::ifstream file(std::string(OCTET_SOURCE_DIR) + "/tests/golden/chat.jsonl");
  int answered = 0;
  for (std::string line; std::getline(file, line);) {
    const json::Value value = json::parse({.text = line, .file = "chat.jsonl"});
    const json::Fields fields(value, "chat.jsonl");
    std::vector<Message> messages;
    for (const json::Fields& m : fields.objects("messages")) messages.push_back({m.text("role"), m.text("content")});
    if (messages.back().role != "assistant") continue;
    ++answered;
    messages.pop_back();
    const ChatTemplate chat = ChatTemplate::named(fields.text("template"), begin);
    const std::string question = text_of(chat.question(messages)), &whole = fields.text("text");
    EXPECT_TRUE(whole.starts_with(question) && whole.size() > question.size()) << question;
    EXPECT_NE(whole.find(chat.end_of_answer(), question.size()), std::string::npos);
    EXPECT_TRUE(question.ends_with("assistant\n") || question.ends_with("assistant<|end_header_id|>\n\n")) << question;
  }
  EXPECT_GT(answered, 30);
}

TEST(ChatTemplate, IsRecognizedByItsTextAndRefusedOtherwise) {
  const std::string body =
      "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ "
      "'<|im_start|>assistant\n' }}{% endif %}";
  const std::string loop = "{% for message in messages %}";
  EXPECT_EQ(ChatTemplate::recognized(loop + body, "", "f").name(), "chatml");
  EXPECT_EQ(ChatTemplate::recognized(loop + body + " \n", "", "f").name(), "chatml");
  EXPECT_EQ(ChatTemplate::recognized(loop +
                                         "{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are a helpful "
                                         "assistant.<|im_end|>\n' }}{% endif %}" +
                                         body,
                                     "", "f")
                .name(),
            "qwen2");
  try {
    ChatTemplate::recognized(body, "", "model/tokenizer_config.json");
    FAIL();
  } catch (const DataError& e) {
    EXPECT_NE(std::string(e.what()).find("model/tokenizer_config.json: its chat template"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("--chat-template"), std::string::npos);
  }
  EXPECT_THROW(ChatTemplate::named("alpaca", ""), ConfigError);
}

}  // namespace
}  // namespace octet::models
