#include "octet/tokenizer/text_stream.hpp"

#include <algorithm>

namespace octet::tokenizer {
namespace {

constexpr std::size_t few = 8, many = 64;  // ids that are decoded together
constexpr std::string_view incomplete = "\uFFFD";
constexpr std::size_t longest_character = 4;  // ids of one character

}  // namespace

TextStream::TextStream(const Tokenizer& tokenizer, std::span<const std::int32_t> before) : tokenizer_(tokenizer) {
  const auto last = before.last(std::min(before.size(), few));
  ids_.assign(last.begin(), last.end());
  shown_ = tokenizer.decode(ids_);
}

std::string TextStream::next(std::int32_t id) {
  ids_.push_back(id);
  const std::string text = tokenizer_.decode(ids_);
  std::size_t waiting = 0;
  while (waiting < longest_character && std::string_view(text).substr(0, text.size() - waiting * incomplete.size()).ends_with(incomplete))
    ++waiting;
  const bool wait = waiting > 0 && waiting < longest_character;
  if (wait || text.size() <= shown_.size()) return "";
  std::string fresh = text.substr(shown_.size());
  shown_ = text;
  if (ids_.size() > many) {
    ids_.erase(ids_.begin(), ids_.end() - std::ptrdiff_t(few));
    shown_ = tokenizer_.decode(ids_);
  }
  return fresh;
}

std::string TextStream::finish() {
  const std::string text = tokenizer_.decode(ids_);
  std::string fresh = text.size() > shown_.size() ? text.substr(shown_.size()) : "";
  shown_ = text;
  return fresh;
}

}  // namespace octet::tokenizer
