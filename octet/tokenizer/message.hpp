#pragma once

#include <functional>
#include <string>
#include <vector>

namespace octet::tokenizer {

/// A message of a conversation; role: "system", "user" or "assistant".
struct Message {
  std::string role, content;
  friend bool operator==(const Message&, const Message&) = default;
};

/// A piece of a conversation's text; `answer`: the model is to write it.
struct ChatSpan {
  std::string text;
  bool answer = false;
};

/// How a model's conversations are written.
using ChatForm = std::function<std::vector<ChatSpan>(const std::vector<Message>&)>;

}  // namespace octet::tokenizer
