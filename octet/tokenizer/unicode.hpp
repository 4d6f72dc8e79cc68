#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace octet::tokenizer {

/// A character of well-formed UTF-8 and its length in bytes.
struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;
};

/// The character that `text` begins with; `text` is well-formed UTF-8 and not empty.
Character first_character(std::string_view text);
/// The character that `text` ends with.
Character last_character(std::string_view text);
void append_utf8(std::string& text, char32_t code);

/// The Unicode property White_Space.
bool is_white_space(char32_t code);
/// General category Nd, Nl or No.
bool is_numeric(char32_t code);
/// A character of a word: Alphabetic, marks, Nd, Pc, Join_Control. Source: Unicode Technical Standard 18, annex C.
bool is_word(char32_t code);
/// The lower case of a character: one character, except for U+0130, which has two.
void append_lower(std::string& text, char32_t code);

/// `text` with U+FFFD for each maximal part of an ill-formed sequence (Unicode 15, section 3.9, as Python's errors="replace");
/// `replaced`: their number. The result may refer to `text` or to `storage`.
std::string_view well_formed(std::string_view text, std::string& storage, std::size_t& replaced);

}  // namespace octet::tokenizer
