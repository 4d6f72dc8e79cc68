#include "octet/models/chat_template.hpp"

#include <algorithm>

#include "octet/base/checksum.hpp"
#include "octet/base/error.hpp"
#include "octet/base/file.hpp"
#include "octet/base/path.hpp"
#include "octet/base/text.hpp"
#include "octet/json/value.hpp"
#include "octet/tokenizer/special_tokens.hpp"
#include "octet/tokenizer/tokenizer.hpp"

namespace octet::models {
namespace {

using tokenizer::ChatSpan;
using tokenizer::Message;

constexpr const char* jinja_file_name = "chat_template.jinja";
constexpr std::size_t most_template_bytes = std::size_t(1) << 20;
constexpr std::string_view form_names[] = {"chatml", "qwen2", "qwen2.5", "qwen3", "llama3"};

constexpr std::string_view system_of_qwen2 = "You are a helpful assistant.";
constexpr std::string_view system_of_qwen25 = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";

std::string_view without(std::string_view text, std::string_view blanks, bool left, bool right) {
  while (left && !text.empty() && blanks.find(text.front()) != text.npos) text.remove_prefix(1);
  while (right && !text.empty() && blanks.find(text.back()) != text.npos) text.remove_suffix(1);
  return text;
}
constexpr std::string_view all_blanks = " \t\n\r\f\v\x1c\x1d\x1e\x1f";  // of ASCII, as Python's strip() takes them

// As Python's strip(): without blanks of Unicode around it.
std::string_view stripped(std::string_view text) {
  static constexpr std::string_view wide[] = {"\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\xa8", "\xe2\x80\xa9",
                                              "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80", "\xe2\x80\x80", "\xe2\x80\x81",
                                              "\xe2\x80\x82", "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86",
                                              "\xe2\x80\x87", "\xe2\x80\x88", "\xe2\x80\x89", "\xe2\x80\x8a"};
  for (std::size_t before = text.npos; before != text.size();) {
    before = text.size();
    text = without(text, all_blanks, true, true);
    for (const std::string_view blank : wide) {
      if (text.starts_with(blank)) text.remove_prefix(blank.size());
      if (text.ends_with(blank)) text.remove_suffix(blank.size());
    }
  }
  return text;
}

/// An answer of Qwen3, and the thought in it.
struct Thought {
  std::string_view thought, content;
};
Thought thought_of(std::string_view content) {
  constexpr std::string_view begin = "<think>", end = "</think>";
  if (content.find(end) == content.npos) return {"", content};
  std::string_view thought = without(content.substr(0, content.find(end)), "\n", false, true);
  if (const std::size_t at = thought.rfind(begin); at != thought.npos) thought.remove_prefix(at + begin.size());
  return {without(thought, "\n", true, false), without(content.substr(content.rfind(end) + end.size()), "\n", true, false)};
}

bool is_answer(const Message& m) { return m.role == "assistant"; }

void add_chatml(std::vector<ChatSpan>& parts, const Message& m, const std::string& content) {
  parts.push_back({"<|im_start|>" + m.role + "\n", false});
  parts.push_back({content + "<|im_end|>\n", is_answer(m)});
}

std::vector<ChatSpan> chatml(const std::vector<Message>& messages, std::string_view system) {
  std::vector<ChatSpan> parts;
  if (!system.empty() && (messages.empty() || messages.front().role != "system"))
    parts.push_back({format("<|im_start|>system\n{}<|im_end|>\n", system), false});
  for (const Message& m : messages) add_chatml(parts, m, m.content);
  return parts;
}

// A question that is a tool's response is none.
bool asks(const Message& m) {
  return m.role == "user" && !(m.content.starts_with("<tool_response>") && m.content.ends_with("</tool_response>"));
}

std::vector<ChatSpan> qwen3(const std::vector<Message>& messages) {
  std::size_t last_question = messages.size() - 1;
  for (std::size_t i = messages.size(); i-- > 0;)
    if (asks(messages[i])) {
      last_question = i;
      break;
    }
  std::vector<ChatSpan> parts;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Message& m = messages[i];
    const Thought t = is_answer(m) ? thought_of(m.content) : Thought{"", m.content};
    const bool thinks = is_answer(m) && i > last_question && (i + 1 == messages.size() || !t.thought.empty());
    add_chatml(parts, m,
               thinks ? format("<think>\n{}\n</think>\n\n{}", without(t.thought, "\n", true, true), without(t.content, "\n", true, false))
                      : std::string(t.content));
  }
  return parts;
}

std::vector<ChatSpan> llama3(const std::vector<Message>& messages, const std::string& begin) {
  std::vector<ChatSpan> parts;
  for (const Message& m : messages) {
    parts.push_back({format("{}<|start_header_id|>{}<|end_header_id|>\n\n", parts.empty() ? begin : "", m.role), false});
    parts.push_back({std::string(stripped(m.content)) + "<|eot_id|>", is_answer(m)});
  }
  return parts;
}

// The text of chat_template: a string, or a list of named ones.
const std::string* template_in(const json::Value& config) {
  const json::Value* found = config.find("chat_template");
  if (found == nullptr) return nullptr;
  if (const json::Array* all = found->array())
    for (const json::Value& one : *all) {
      const json::Value *name = one.find("name"), *text = one.find("template");
      if (name != nullptr && name->text() != nullptr && *name->text() == "default" && text != nullptr) return text->text();
    }
  return found->text();
}

json::Value config_of(const std::string& folder) {
  const std::string path = folder + "/" + tokenizer::config_file_name;
  return exists(path) ? json::load(path, {.bytes = tokenizer::most_source_bytes}) : json::Value(json::Object{});
}

}  // namespace

std::string begin_of_text(const std::string& folder) { return tokenizer::special_token(config_of(folder), "bos_token"); }

std::vector<std::string_view> ChatTemplate::names() { return {std::begin(form_names), std::end(form_names)}; }
std::string_view ChatTemplate::name() const { return form_names[std::size_t(form_)]; }

ChatTemplate ChatTemplate::named(std::string_view name, const std::string& begin) {
  const auto found = std::ranges::find(form_names, name);
  if (found == std::end(form_names))
    throw ConfigError(format("the chat template \"{}\" does not exist; templates are {}", printable(name), joined(names())));
  return {Form(found - std::begin(form_names)), begin};
}

ChatTemplate ChatTemplate::recognized(std::string_view text, const std::string& begin, const std::string& file) {
  struct Known {
    std::string_view checksum;
    Form form;
  };
  static constexpr Known known[] = {
      {"f0a6a8278439fdb056191e205a440263", Form::chatml},  // of ChatML models, such as SmolLM2
      {"a344e8c84fb0282dda206a9e46a4ac01", Form::chatml},  // the same, with a default for add_generation_prompt
      {"cc9ddd5a40bc1c0c8fb5d937b1e8f5d0", Form::chatml},  // Qwen3 Instruct 2507
      {"e580c2da83415028d5d943bd0bd9082f", Form::qwen2},   // Qwen1.5 and Qwen2 Instruct
      {"e392aa06018503fd2469c9508f79506e", Form::qwen25},  // Qwen2.5 Instruct
      {"0fab82ce8f4d5175c9e0155c80737cf2", Form::qwen3},   // Qwen3
      {"09facc0e4aa943189799ad6e2dea0594", Form::llama3},  // Llama 3 Instruct
      {"1c3ab7d0683618d9f6db71f9f4a22e96", Form::llama3},  // the same, with a default for add_generation_prompt
  };
  const std::string found = to_text(data::checksum_of(without(text, all_blanks, false, true)));
  for (const Known& k : known)
    if (found == k.checksum) return {k.form, begin};
  throw DataError(format(
      "{}: its chat template (XXH3-128 {}) is none of those that this version writes: {}; if one of them fits the model, name it with "
      "--chat-template (a run: data.chat_template), or write the conversations as text by another program",
      printable(file), found, joined(names())));
}

ChatTemplate ChatTemplate::of_folder(const std::string& folder) {
  const std::string config_path = folder + "/" + tokenizer::config_file_name, jinja_path = folder + "/" + jinja_file_name;
  const json::Value config = config_of(folder);
  const std::string begin = tokenizer::special_token(config, "bos_token");
  if (exists(jinja_path)) return recognized(read_file(jinja_path, most_template_bytes), begin, jinja_path);
  if (const std::string* text = template_in(config)) return recognized(*text, begin, config_path);
  throw ConfigError(
      format("{} has no chat template: neither {} nor chat_template in {}; name one of {} with --chat-template (a run: data.chat_template)",
             printable(folder), jinja_file_name, tokenizer::config_file_name, joined(names())));
}

std::vector<ChatSpan> ChatTemplate::question(std::vector<Message> messages) const {
  messages.push_back({"assistant", ""});
  std::vector<ChatSpan> parts = render(messages);
  parts.pop_back();  // the empty answer; the header before it remains
  return parts;
}

std::string_view ChatTemplate::end_of_answer() const { return form_ == Form::llama3 ? "<|eot_id|>" : "<|im_end|>"; }

std::vector<ChatSpan> ChatTemplate::render(const std::vector<Message>& messages) const {
  switch (form_) {
    case Form::chatml: return chatml(messages, "");
    case Form::qwen2: return chatml(messages, system_of_qwen2);
    case Form::qwen25: return chatml(messages, system_of_qwen25);
    case Form::qwen3: return qwen3(messages);
    case Form::llama3: return llama3(messages, begin_);
  }
  return {};
}

}  // namespace octet::models
