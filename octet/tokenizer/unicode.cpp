#include "octet/tokenizer/unicode.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>

#include "octet/base/utf8.hpp"

namespace octet::tokenizer {
namespace {

unsigned byte_at(std::string_view s, std::size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; }
bool continues(unsigned c) { return (c & 0xC0) == 0x80; }

/// The same as valid_utf8_bytes(), eight bytes at a time where they are ASCII.
std::size_t well_formed_bytes(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    std::uint64_t eight = 0x80;
    if (i + 8 <= text.size()) std::memcpy(&eight, text.data() + i, 8);
    if ((eight & 0x8080808080808080) == 0) {
      i += 8;
      continue;
    }
    const std::size_t n = utf8_sequence_bytes(text.substr(i));
    if (n == 0) break;
    i += n;
  }
  return i;
}

/// Characters of category So with the property Other_Alphabetic.
bool is_circled_letter(char32_t c) {
  return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

}  // namespace

Character first_character(std::string_view text) {
  const unsigned first = byte_at(text, 0);
  const auto low = [&](std::size_t i) { return char32_t(byte_at(text, i) & 0x3F); };
  if (first < 0x80) return {first, 1};
  if (first < 0xE0) return {(first & 0x1F) << 6 | low(1), 2};
  if (first < 0xF0) return {(first & 0x0F) << 12 | low(1) << 6 | low(2), 3};
  return {(first & 0x07) << 18 | low(1) << 12 | low(2) << 6 | low(3), 4};
}

Character last_character(std::string_view text) {
  std::size_t begin = text.size() - 1;
  while (begin > 0 && continues(byte_at(text, begin))) --begin;
  return first_character(text.substr(begin));
}

void append_utf8(std::string& text, char32_t code) {
  utf8proc_uint8_t bytes[4];
  const auto n = utf8proc_encode_char(utf8proc_int32_t(code), bytes);
  text.append(reinterpret_cast<const char*>(bytes), std::size_t(n));
}

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool is_numeric(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  const auto category = utf8proc_category(utf8proc_int32_t(c));
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO;
}

bool is_word(char32_t c) {
  switch (utf8proc_category(utf8proc_int32_t(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    default: return c == 0x200C || c == 0x200D || is_circled_letter(c);
  }
}

void append_lower(std::string& text, char32_t c) {
  append_utf8(text, c == 0x130 ? U'i' : char32_t(utf8proc_tolower(utf8proc_int32_t(c))));
  if (c == 0x130) append_utf8(text, 0x307);
}

std::string_view well_formed(std::string_view text, std::string& storage, std::size_t& replaced) {
  replaced = 0;
  std::size_t good = well_formed_bytes(text);
  if (good == text.size()) return text;
  storage.clear();
  while (true) {
    storage.append(text.substr(0, good));
    text.remove_prefix(good);
    if (text.empty()) return storage;
    storage.append("\xEF\xBF\xBD");
    ++replaced;
    text.remove_prefix(std::max<std::size_t>(1, utf8_sequence(text).bytes));  // of an ill-formed sequence
    good = well_formed_bytes(text);
  }
}

}  // namespace octet::tokenizer
