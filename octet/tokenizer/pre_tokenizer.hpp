#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "octet/json/fields.hpp"
#include "octet/tokenizer/regex.hpp"

namespace octet::tokenizer {

/// Receives the parts of a text in order; no part is empty. `at_start`: the part begins where the document begins.
class PreTokenReceiver {
 public:
  virtual ~PreTokenReceiver() = default;
  virtual void add(std::string_view part, bool at_start) = 0;
};

/// Divides a text into parts that are encoded separately: one entry of tokenizer.json's "pre_tokenizer".
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  /// `storage`: memory for a changed text, valid until the next call.
  virtual void split(std::string_view text, bool at_start, std::string& storage, Regex::Scratch&, PreTokenReceiver& parts) const = 0;

  /// The borders that this pre-tokenizer makes in any context.
  enum class Borders : std::uint8_t {
    unknown,    // no statement: a text must be divided in one go
    unchanged,  // none, and both sides of a space between two ASCII letters are divided independently
    at_spaces,  // before a space between two ASCII letters
    at_lines,   // the same, and before a letter after a visible character and "\n"
  };
  virtual Borders borders() const = 0;
  /// Whether it adds a space, or its mark, before a text that does not begin with one.
  virtual bool prepends() const { return false; }
  /// Whether each space becomes the space_mark of normalizer.hpp.
  virtual bool marks_spaces() const { return false; }
};

struct PreTokenizers {
  std::vector<std::unique_ptr<const PreTokenizer>> stages;
  bool byte_level = false;  // the model's characters are bytes

  /// Of all stages together.
  PreTokenizer::Borders borders() const;
};

/// The pre-tokenizers of the object "pre_tokenizer", Sequence resolved. Throws DataError for an unsupported type, key or order.
PreTokenizers read_pre_tokenizers(const json::Fields& fields, const std::string& file);

/// Patterns whose borders are known: those of Split with at_lines.
std::span<const std::string_view> known_patterns();
/// The digits that a part may have under the first three of them, in their order.
inline constexpr std::array<std::string_view, 3> pattern_digits{"3", "1", "any"};
/// The pattern with these digits. Throws ContractError when there is none.
std::string_view pattern_with_digits(std::string_view digits);
/// The pattern of the pre-tokenizer ByteLevel. Source: the pre-tokenizer of GPT-2.
extern const std::string_view byte_level_pattern;
/// The default pattern of trained tokenizers: contractions, words with one leading sign, up to three digits, signs, line ends, spaces.
/// Source: the pre-tokenizer of Llama 3.
extern const std::string_view default_pattern;

}  // namespace octet::tokenizer
