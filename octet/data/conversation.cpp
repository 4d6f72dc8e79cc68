#include "octet/data/conversation.hpp"

#include <algorithm>
#include <utility>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/data/json_lines.hpp"
#include "octet/data/token_format.hpp"
#include "octet/json/fields.hpp"

namespace octet::data {
namespace {

using tokenizer::Message;

std::string role_of(const json::Fields& message, std::string_view key) {
  static constexpr std::pair<std::string_view, std::string_view> roles[] = {
      {"system", "system"}, {"user", "user"}, {"assistant", "assistant"}, {"human", "user"}, {"gpt", "assistant"}};
  for (const auto& [theirs, ours] : roles)
    if (message.text(key) == theirs) return std::string(ours);
  message.refuse(key, "system, user or assistant (ShareGPT: human or gpt); this version writes no tools and no other roles");
}

void add(std::vector<Message>& to, const json::Fields& line, std::string_view list, std::string_view role, std::string_view content) {
  for (const json::Fields& m : line.objects(list)) {
    for (const char* tools : {"tool_calls", "function_call"})
      if (m.has(tools) && !(m.value(tools).array() != nullptr && m.value(tools).array()->empty()))
        m.refuse(tools, "absent: this version writes no tools");
    to.push_back({role_of(m, role), m.text(content)});
  }
}

// A text of that role, or messages.
void add_side(std::vector<Message>& to, const json::Fields& line, std::string_view key, const char* role) {
  if (line.value(key).array() != nullptr) add(to, line, key, "role", "content");
  else to.push_back({role, line.text(key)});
}

std::vector<Message> instruction(const json::Fields& line) {
  std::string question = line.text("instruction");
  if (const std::string input = line.text_or("input", ""); !input.empty()) question += "\n\n" + input;
  return {{"user", std::move(question)}, {"assistant", line.text("output")}};
}

}  // namespace

std::vector<Message> conversation_of(std::string_view text, const std::string& place) {
  const json::Value value =
      json::parse({.text = text,
                   .file = place,
                   .limits = {.bytes = JsonLines::most_line_bytes, .values = json::Limits::none, .piece = JsonLines::most_line_bytes},
                   .place = json::Place::column});
  const json::Fields line(value, place);
  std::vector<Message> out;
  if (line.has("system")) out.push_back({"system", line.text("system")});
  if (!out.empty() && out.front().content.empty()) out.clear();
  if (line.has("messages")) add(out, line, "messages", "role", "content");
  else if (line.has("conversations")) add(out, line, "conversations", "from", "value");
  else if (line.has("prompt") && line.has("completion"))
    add_side(out, line, "prompt", "user"), add_side(out, line, "completion", "assistant");
  else if (line.has("instruction") && line.has("output"))
    for (Message& m : instruction(line)) out.push_back(std::move(m));
  else
    throw DataError(
        format("{}: it has no \"messages\", \"conversations\", \"prompt\" with \"completion\", or \"instruction\" with \"output\"", place));
  if (std::ranges::none_of(out, [](const Message& m) { return m.role == "assistant"; }))
    throw DataError(format("{}: the conversation has no answer of an assistant, so there is nothing to learn", place));
  return out;
}

std::size_t encode_conversation(const tokenizer::Tokenizer& tokenizer, const std::vector<tokenizer::ChatPart>& parts,
                                std::vector<std::int32_t>& ids) {
  std::string text;
  for (const tokenizer::ChatPart& p : parts) text += p.text;
  std::vector<std::int32_t> whole, before;
  tokenizer.encode(text, whole);
  // Where a part begins: the ids that the text before it has, too. One that reaches over the border belongs to neither.
  const auto ids_before = [&](std::size_t bytes) {
    before.clear();
    tokenizer.encode(std::string_view(text).substr(0, bytes), before);
    return std::size_t(std::ranges::mismatch(whole, before).in1 - whole.begin());
  };
  std::vector<bool> answers(whole.size(), false);
  std::size_t at = 0;
  for (const tokenizer::ChatPart& p : parts) {
    if (p.answer) {
      std::size_t first = ids_before(at);
      if (first < before.size()) ++first;  // the id over the border
      for (std::size_t i = first, end = ids_before(at + p.text.size()); i < end; ++i) answers[i] = true;
    }
    at += p.text.size();
  }
  for (std::size_t i = 0; i < whole.size(); ++i)
    ids.push_back(answers[i] ? whole[i] : std::int32_t(std::uint32_t(whole[i]) | context_mark));
  return text.size();
}

}  // namespace octet::data
