#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octet::tokenizer {

/// The position of an encoded text in its document.
enum class Position : std::uint8_t {
  start,      // a whole document, or its first part
  continued,  // a later part, which begins at a last_cut()
};

/// Text to token ids and back. Const calls are thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// The identity that token shards store, at most 63 bytes: "byte", or "bpe:" and the XXH3-128 of tokenizer.json as 32 digits. Two
  /// tokenizers of one identity give the same ids.
  virtual std::string_view name() const = 0;
  /// Every id lies in [0, vocab_size). Models may pad their tables beyond it.
  virtual std::int32_t vocab_size() const = 0;
  /// The id that ends every document in a token stream, if it is known.
  virtual std::optional<std::int32_t> document_separator() const = 0;
  /// The id in place of an empty text before another one: the begin token, or else the separator.
  virtual std::optional<std::int32_t> empty_context() const { return document_separator(); }
  /// Ids before and after the text of each document, as the tokenizer's template adds them.
  virtual std::span<const std::int32_t> document_prefix() const { return {}; }
  virtual std::span<const std::int32_t> document_suffix() const { return {}; }

  /// Appends the ids of `text` to `ids`, without prefix and suffix. Any bytes are accepted. Returns the number of invalid UTF-8 sequences
  /// that were encoded as U+FFFD. Throws DataError when a pattern of the tokenizer needs too much time for this text.
  virtual std::size_t encode(std::string_view text, std::vector<std::int32_t>& ids, Position = Position::start) const = 0;
  /// The text of `ids`. Special tokens, a model's padding and other ids without text add none.
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;

  /// The largest p > 0 such that the text before byte p, and the text from p on with Position::continued, encoded separately, give the
  /// same ids in any context; 0 when there is none. Long documents are read and encoded in such pieces.
  virtual std::size_t last_cut(std::string_view text) const = 0;

  /// The bytes of tokenizer.json; none for the byte tokenizer.
  virtual std::string_view source() const { return {}; }
};

inline constexpr std::size_t most_source_bytes = std::size_t(64) << 20;
inline constexpr const char* file_name = "tokenizer.json";
inline constexpr const char* config_file_name = "tokenizer_config.json";

struct OpenOptions {
  /// The token that ends a document, such as "<|endoftext|>". Empty: eos_token of tokenizer_config.json, or else eos_token_id of
  /// generation_config.json or config.json, in the folder of tokenizer.json.
  std::string end_of_document = {};
};

/// The tokenizer "byte", or that of a tokenizer.json file, or of a folder that has one. Throws ConfigError (no such name, file, or token),
/// DataError (a file that is invalid or needs an unsupported part, which is named), IoError.
std::unique_ptr<const Tokenizer> open_tokenizer(const std::string& name_or_path, const OpenOptions& = {});

/// The identity that open_tokenizer() would give to the tokenizer.json in `folder`; nothing if it has none or is "".
std::optional<std::string> identity_in(const std::string& folder);
/// The identity of a tokenizer.json with these bytes.
std::string identity_of(std::string_view source);

/// The bytes of a tokenizer.json. Throws DataError when it has more than 64 MiB, IoError.
std::string read_source(const std::string& path);

}  // namespace octet::tokenizer
