#include "octet/data/python_text.hpp"

#include "octet/tokenizer/unicode.hpp"

namespace octet::data {
namespace {

using tokenizer::append_lower, tokenizer::first_character;

// str.isspace(): White_Space, and the four separators of ASCII.
bool blank(char32_t code) { return tokenizer::is_white_space(code) || (code >= 0x1C && code <= 0x1F); }

std::string lower(char32_t code) {
  std::string out;
  append_lower(out, code);
  return out;
}

// The letter whose lower case is `code`, in the scripts that have both cases: Latin, Greek, Cyrillic, Armenian.
char32_t upper(char32_t code) {
  constexpr char32_t end = 0x590;
  std::string wanted;
  tokenizer::append_utf8(wanted, code);
  for (char32_t i = 'A'; code < end && i < end; ++i)
    if (i != code && lower(i) == wanted) return i;
  return code;
}

}  // namespace

std::string_view stripped_behind(std::string_view text) {
  while (!text.empty() && blank(tokenizer::last_character(text).code)) text.remove_suffix(tokenizer::last_character(text).bytes);
  return text;
}

std::string_view stripped(std::string_view text) {
  text = stripped_behind(text);
  while (!text.empty() && blank(first_character(text).code)) text.remove_prefix(first_character(text).bytes);
  return text;
}

std::string capitalized(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += first_character(text.substr(at)).bytes) {
    const char32_t code = first_character(text.substr(at)).code;
    if (at == 0) tokenizer::append_utf8(out, upper(code));
    else append_lower(out, code);
  }
  return out;
}

}  // namespace octet::data
