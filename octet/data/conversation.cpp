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

json::Value parsed(std::string_view text, const std::string& place) {
  return json::parse({.text = text,
                      .file = place,
                      .limits = {.bytes = JsonLines::most_line_bytes, .values = json::Limits::none, .piece = JsonLines::most_line_bytes},
                      .place = json::Place::column});
}

// The message of the member "system", if there is one.
std::vector<Message> system_of(const json::Fields& line) {
  if (!line.has("system") || line.text("system").empty()) return {};
  return {{"system", line.text("system")}};
}

// Without the messages of the question before it.
std::vector<Message> answer_of(const json::Fields& line, std::string_view key, const std::vector<Message>& question) {
  std::vector<Message> out;
  add_side(out, line, key, "assistant");
  const std::size_t all = question.size(), bare = all > 0 && question.front().role == "system" ? all - 1 : all;
  for (const std::size_t n : {all, bare})
    if (n > 0 && out.size() > n && std::equal(question.end() - std::ptrdiff_t(n), question.end(), out.begin())) {
      out.erase(out.begin(), out.begin() + std::ptrdiff_t(n));
      break;
    }
  return out;
}

void require_answer(const json::Fields& line, std::string_view key, const std::vector<Message>& answer) {
  const auto empty = [](const Message& m) { return m.role == "assistant" && m.content.find_first_not_of(" \t\r\n") == std::string::npos; };
  if (answer.empty() || answer.front().role != "assistant" || answer.back().role != "assistant" || std::ranges::any_of(answer, empty))
    line.refuse(key, "an answer of the assistant that is not empty, behind the question of the pair");
}

// The messages with which both begin; each has at least one more.
std::size_t common_messages(const std::vector<Message>& a, const std::vector<Message>& b) {
  std::size_t n = 0;
  while (n + 1 < a.size() && n + 1 < b.size() && a[n] == b[n]) ++n;
  return n;
}

}  // namespace

AnswerPair answer_pair_of(std::string_view text, const std::string& place) {
  const json::Value value = parsed(text, place);
  const json::Fields line(value, place);
  for (const char* key : {"chosen", "rejected"})
    if (!line.has(key)) throw DataError(format("{}: it has no \"{}\"; a pair has \"prompt\", \"chosen\" and \"rejected\"", place, key));
  AnswerPair out{.question = system_of(line), .chosen = {}, .rejected = {}};
  if (line.has("prompt")) add_side(out.question, line, "prompt", "user");
  out.chosen = answer_of(line, "chosen", out.question), out.rejected = answer_of(line, "rejected", out.question);
  if (!line.has("prompt")) {
    const auto n = std::ptrdiff_t(common_messages(out.chosen, out.rejected));
    out.question.insert(out.question.end(), out.chosen.begin(), out.chosen.begin() + n);
    out.chosen.erase(out.chosen.begin(), out.chosen.begin() + n), out.rejected.erase(out.rejected.begin(), out.rejected.begin() + n);
  }
  if (std::ranges::all_of(out.question, [](const Message& m) { return m.role == "system"; }))
    throw DataError(format("{}: the pair has no question: neither \"prompt\" nor messages with which both answers begin", place));
  require_answer(line, "chosen", out.chosen), require_answer(line, "rejected", out.rejected);
  if (out.chosen == out.rejected) throw DataError(format("{}: \"chosen\" and \"rejected\" are equal, so there is no preference", place));
  return out;
}

std::vector<tokenizer::ChatSpan> parts_of_answer(const tokenizer::ChatForm& form, const AnswerPair& pair,
                                                 const std::vector<Message>& answer) {
  std::vector<Message> messages = pair.question;
  messages.insert(messages.end(), answer.begin(), answer.end());
  auto earlier = std::ranges::count(pair.question, std::string("assistant"), &Message::role);
  std::vector<tokenizer::ChatSpan> parts = form(messages);
  for (tokenizer::ChatSpan& p : parts)
    if (p.answer && earlier > 0) p.answer = false, --earlier;
  return parts;
}

std::vector<Message> conversation_of(std::string_view text, const std::string& place) {
  const json::Value value = parsed(text, place);
  const json::Fields line(value, place);
  std::vector<Message> out = system_of(line);
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

std::size_t encode_conversation(const tokenizer::Tokenizer& tokenizer, const std::vector<tokenizer::ChatSpan>& parts,
                                std::vector<std::int32_t>& ids) {
  std::string text;
  for (const tokenizer::ChatSpan& p : parts) text += p.text;
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
  for (const tokenizer::ChatSpan& p : parts) {
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
