#include "octet/config/toml_guard.hpp"

#include <algorithm>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/base/utf8.hpp"
#include "octet/config/read.hpp"

namespace octet::config {
namespace {

constexpr int most_levels = 16;

bool continues(unsigned char c) { return (c & 0xC0) == 0x80; }

/// The offset just behind the string whose opening quote is at `i`. Where the string never ends, the place where the parser will give up.
std::size_t skip_string(std::string_view text, std::size_t i) {
  const char quote = text[i];
  const bool escapes = quote == '"', triple = text.substr(i, 3) == std::string(3, quote);
  for (i += triple ? 3 : 1; i < text.size(); ++i) {
    if (escapes && text[i] == '\\') {
      ++i;
    } else if (!triple && (text[i] == quote || text[i] == '\n')) {
      return text[i] == quote ? i + 1 : i;
    } else if (triple && text.substr(i, 3) == std::string(3, quote)) {
      // Up to two quotes more belong to the text itself.
      i += 3;
      for (int more = 0; more < 2 && i < text.size() && text[i] == quote; ++more) ++i;
      return i;
    }
  }
  return text.size();
}

/// Text outside strings and comments: no deep nesting, and ASCII alone, as TOML 1.0 has it.
void guard_structure(std::string_view text, const std::string& name) {
  int brackets = 0, dots = 0;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const auto refuse = [&](const std::string& what) { throw ConfigError(place_text(name, position_at(text, i)) + what); };
    if (c == '"' || c == '\'') {
      i = skip_string(text, i);
      continue;
    }
    if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    if (static_cast<unsigned char>(c) >= 0x80) {
      refuse(format("'{}' may occur only in quotes and in comments", text.substr(i, utf8_sequence_bytes(text.substr(i)))));
    }
    if (c == '[' || c == '{') ++brackets;
    if ((c == ']' || c == '}') && brackets > 0) --brackets;
    if (c == '.') ++dots;
    if (c == '=' || c == ',' || c == '\n' || c == '[' || c == '{') dots = 0;
    if (brackets > most_levels || dots > most_levels) refuse(format("more than {} levels deep; no configuration needs that", most_levels));
    ++i;
  }
}

}  // namespace

Position position_at(std::string_view text, std::size_t offset) {
  Position p;
  for (const char c : text.substr(0, offset)) {
    if (c == '\n') ++p.line, p.column = 1;
    else if (!continues(static_cast<unsigned char>(c))) ++p.column;
  }
  return p;
}

std::string place_text(const std::string& name, Position p) { return format("{}:{}:{}: ", printable(name), p.line, p.column); }

void guard_toml(std::string_view text, const std::string& name) {
  const auto refuse = [&](std::string_view what) { throw ConfigError(printable(name) + ": " + std::string(what)); };
  if (text.size() > max_toml_bytes) {
    refuse(format("a configuration may have at most {} bytes, this has {}", grouped(max_toml_bytes), grouped((long long)text.size())));
  }
  if (text.starts_with("\xEF\xBB\xBF")) refuse("begins with a byte-order mark; save it as UTF-8 without one");
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF") || (text.size() > 1 && (text[0] == 0) != (text[1] == 0))) {
    refuse("is UTF-16 or UTF-32 text; save it as UTF-8");
  }
  if (const std::size_t valid = valid_utf8_bytes(text); valid < text.size()) {
    const auto byte = static_cast<unsigned char>(text[valid]);
    throw ConfigError(format("{}byte {} is not UTF-8; save the file as UTF-8", place_text(name, position_at(text, valid)), int(byte)));
  }
  if (const std::size_t at = std::min(text.find('\xF4'), text.find("\\U0010")); at != std::string_view::npos) {
    throw ConfigError(place_text(name, position_at(text, at)) + "a character for private use, from U+100000 on; write another");
  }
  guard_structure(text, name);
}

}  // namespace octet::config
