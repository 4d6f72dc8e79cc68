#pragma once

#include "octet/tokenizer/tokenizer.hpp"

namespace octet::tokenizer {

/// The text of ids that come one by one. A character is complete before it is shown.
class TextStream {
 public:
  /// `before`: ids whose text is known, such as those of a prompt. The tokenizer must outlive this.
  TextStream(const Tokenizer& tokenizer, std::span<const std::int32_t> before = {});
  /// The text that `id` adds: "" while it ends in an incomplete character.
  std::string next(std::int32_t id);
  /// The rest, with U+FFFD for an incomplete character.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  std::vector<std::int32_t> ids_;
  std::string shown_;  // the text of ids_ that was returned, or known before
};

}  // namespace octet::tokenizer
