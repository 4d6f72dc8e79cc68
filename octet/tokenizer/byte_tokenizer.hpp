#pragma once

#include "octet/tokenizer/tokenizer.hpp"

namespace octet::tokenizer {

/// Ids 0 to 255 are the bytes themselves, 256 ends a document: any text in any language, no training, nothing to download.
class ByteTokenizer final : public Tokenizer {
 public:
  static constexpr std::string_view tokenizer_name = "byte";
  static constexpr std::int32_t bytes = 256;

  std::string_view name() const override { return tokenizer_name; }
  std::int32_t vocab_size() const override { return bytes + 1; }
  std::optional<std::int32_t> document_separator() const override { return bytes; }
  /// Every byte is accepted as it is: returns 0.
  std::size_t encode(std::string_view text, std::vector<std::int32_t>& ids, Position = Position::start) const override;
  std::string decode(std::span<const std::int32_t> ids) const override;
  std::size_t last_cut(std::string_view text) const override { return text.size(); }
};

}  // namespace octet::tokenizer
