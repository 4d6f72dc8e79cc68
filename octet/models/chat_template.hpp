#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "octet/tokenizer/message.hpp"

namespace octet::models {

/// How a model's conversations are written, without tools. Jinja is not run: the forms that are known are recognized by the checksum of
/// their template, blanks at its end apart.
///
///   chatml   each message between <|im_start|>role and <|im_end|>; also Qwen3 Instruct 2507
///   qwen2    chatml; without a first system message that of Qwen2
///   qwen2.5  the same with that of Qwen2.5
///   qwen3    chatml with <think>: without a thought in the last answer an empty one, and none in answers before the last question
///   llama3   messages behind <|start_header_id|>role<|end_header_id|>, without blanks around them, up to <|eot_id|>
///
/// An answer is the text behind the header of the assistant, with the mark that ends it.
class ChatTemplate {
 public:
  /// By the text of a template; `begin`: the model's bos_token. Throws DataError for one that is not known. `file` names it.
  static ChatTemplate recognized(std::string_view text, const std::string& begin, const std::string& file);
  /// By its name. Throws ConfigError for another.
  static ChatTemplate named(std::string_view name, const std::string& begin);
  /// That of a model's folder: chat_template.jinja, or else chat_template of tokenizer_config.json. Throws ConfigError where it has none,
  /// DataError as recognized(), IoError.
  static ChatTemplate of_folder(const std::string& folder);
  static std::vector<std::string_view> names();

  std::string_view name() const;
  /// The text of a conversation, as transformers' apply_chat_template() writes it without add_generation_prompt.
  std::vector<tokenizer::ChatSpan> render(const std::vector<tokenizer::Message>&) const;
  /// The text up to where the assistant's next answer begins: the same with add_generation_prompt.
  std::vector<tokenizer::ChatSpan> question(std::vector<tokenizer::Message>) const;
  /// The mark that ends an answer.
  std::string_view end_of_answer() const;

 private:
  enum class Form : std::uint8_t { chatml, qwen2, qwen25, qwen3, llama3 };
  ChatTemplate(Form form, std::string begin) : form_(form), begin_(std::move(begin)) {}

  Form form_;
  std::string begin_;
};

/// The bos_token of tokenizer_config.json in a folder; "" if there is none. Throws DataError, IoError.
std::string begin_of_text(const std::string& folder);

}  // namespace octet::models
