#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Checks of a text before toml++ parses it: its parser and its destructors recurse once per level, so a text of ten thousand
// brackets would end the program rather than give an error.

namespace octet::config {

/// Line and column, both from 1; columns count characters, not bytes.
struct Position {
  std::size_t line = 1, column = 1;
  friend auto operator<=>(const Position&, const Position&) = default;
};
Position position_at(std::string_view text, std::size_t offset);

/// "run.toml:4:17: ".
std::string place_text(const std::string& name, Position);

/// Throws ConfigError, naming `name` and the place, when `text` is longer than max_toml_bytes, begins with a byte-order mark, is not
/// UTF-8, has characters from U+100000 on (for private use; parse_toml has a use for them), has characters beyond ASCII outside strings and
/// comments, or nests brackets, braces or dotted keys more than 16 deep.
void guard_toml(std::string_view text, const std::string& name);

}  // namespace octet::config
