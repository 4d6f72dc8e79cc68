#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace octet::tokenizer {

enum class Form : std::uint8_t { nfc, nfd, nfkc, nfkd };

/// Whether the forms leave a character as it is because Unicode had no data for it in version 9, that of PyPI `tokenizers` (0.23): marks
/// that came later are not sorted, and other characters not decomposed. Of those to version 14; found by comparing with that package.
bool is_newer_than_forms(char32_t code);

/// A Unicode normalization form. Source: Unicode Standard Annex 15; data of utf8proc, as they were in Unicode 9. Time is linear in the
/// text, apart from sorting.
class UnicodeForm {
 public:
  explicit UnicodeForm(Form form);
  /// `text`, well-formed UTF-8, in this form.
  void apply(std::string& text) const;

 private:
  bool inert(char32_t code) const { return code < inert_.size() && inert_[code]; }
  void convert(std::string_view part, std::string& out) const;

  Form form_;
  std::vector<bool> inert_;  // below U+20000: the form does not change the character, and it never joins the one before it
};

}  // namespace octet::tokenizer
