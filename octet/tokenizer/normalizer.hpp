#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "octet/json/fields.hpp"
#include "octet/tokenizer/regex.hpp"

namespace octet::tokenizer {

/// The bound of ids; real vocabularies have a tenth of it. Each id needs some memory, also one without a token.
inline constexpr std::int64_t most_ids = std::int64_t(1) << 21;

/// The character that many vocabularies have in place of a space.
inline constexpr std::string_view space_mark = "\u2581";

/// Changes a text before it is divided: one entry of tokenizer.json's "normalizer".
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// `text` is well-formed UTF-8 and stays so. `continued`: its beginning is not the beginning of a text in the sense of Prepend. May stop
  /// when the text has more than `most` bytes.
  virtual void apply(std::string& text, bool continued, std::size_t most, Regex::Scratch&) const = 0;
  /// Whether the text before and after a space between two ASCII letters can be changed separately, the later part as `continued`.
  virtual bool separable() const { return true; }
  /// Whether each space becomes space_mark.
  virtual bool marks_spaces() const { return false; }
};

/// The bytes to which a tokenizer.json may let a text of `bytes` bytes grow. NFKD, whose texts grow most, needs 11 per byte.
constexpr std::size_t most_grown(std::size_t bytes) { return 16 * bytes + (std::size_t(64) << 10); }
/// Throws the DataError for a text of `bytes` bytes that `part` of the file lets grow further.
[[noreturn]] void refuse_growth(const std::string& file, std::string_view part, std::size_t bytes);

/// The normalizers of a file, in order.
class Normalizers {
 public:
  void add(std::unique_ptr<const Normalizer> next) { all_.push_back(std::move(next)); }
  /// Throws DataError where `text` grows beyond most_grown().
  void apply(std::string& text, bool continued, Regex::Scratch&) const;
  bool empty() const { return all_.empty(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

 private:
  friend Normalizers read_normalizers(const json::Fields&, const std::string&);
  std::string file_;
  std::vector<std::unique_ptr<const Normalizer>> all_;
};

/// The normalizers of the object "normalizer", Sequence resolved. Throws DataError for an unsupported type or key.
Normalizers read_normalizers(const json::Fields& fields, const std::string& file);

/// Throws DataError for a key of `fields` that is not in `known`, and has a value other than null.
void require_keys(const json::Fields& fields, std::initializer_list<std::string_view> known);
/// The pattern {"String": ...} or {"Regex": ...} under the key "pattern".
Regex read_pattern(const json::Fields& fields, const std::string& file);

}  // namespace octet::tokenizer
