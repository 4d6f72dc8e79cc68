#pragma once

#include <memory>
#include <string>
#include <vector>

#include "octet/json/fields.hpp"
#include "octet/tokenizer/regex.hpp"

namespace octet::tokenizer {

/// The character that many vocabularies have in place of a space.
inline constexpr std::string_view space_mark = "\u2581";

/// Changes a text before it is divided: one entry of tokenizer.json's "normalizer".
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// `text` is well-formed UTF-8 and stays so. `continued`: its beginning is not the beginning of a text in the sense of Prepend.
  virtual void apply(std::string& text, bool continued, Regex::Scratch&) const = 0;
  /// Whether the text before and after a space between two ASCII letters can be changed separately, the later part as `continued`.
  virtual bool separable() const { return true; }
  /// Whether each space becomes space_mark.
  virtual bool marks_spaces() const { return false; }
};

using Normalizers = std::vector<std::unique_ptr<const Normalizer>>;

/// The normalizers of the object "normalizer", Sequence resolved. Throws DataError for an unsupported type or key.
Normalizers read_normalizers(const json::Fields& fields, const std::string& file);

/// Throws DataError for a key of `fields` that is not in `known`, and has a value other than null.
void require_keys(const json::Fields& fields, std::initializer_list<std::string_view> known);
/// The pattern {"String": ...} or {"Regex": ...} under the key "pattern".
Regex read_pattern(const json::Fields& fields, const std::string& file);

}  // namespace octet::tokenizer
