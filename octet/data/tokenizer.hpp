#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octet::data {

/// Text to token ids and back. Const calls are thread-safe.
/// A new tokenizer is one file and its line in tokenizer.cpp.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// The name that token shards store and make_tokenizer() knows; at most 63 bytes.
  virtual std::string_view name() const = 0;
  /// Every id lies in [0, vocab_size). Models may pad their tables beyond it.
  virtual std::int32_t vocab_size() const = 0;
  /// The id that ends every document in a token stream; encode() never yields it.
  virtual std::int32_t document_separator() const = 0;

  /// Appends the ids of `text` to `ids`. Any bytes are accepted, valid UTF-8 or not.
  virtual void encode(std::string_view text, std::vector<std::int32_t>& ids) const = 0;
  /// The bytes of `ids`, concatenated. Ids without text (the separator, a model's padding) add none.
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;

  /// The largest p > 0 such that the text before byte p and the text from p on, encoded separately, give the same ids in any context; 0
  /// when there is none. Long documents are read and encoded in such pieces.
  virtual std::size_t last_cut(std::string_view text) const = 0;
};

/// The tokenizer called `name`. Throws ConfigError with the nearest name when there is none.
std::unique_ptr<const Tokenizer> make_tokenizer(std::string_view name);

}  // namespace octet::data
