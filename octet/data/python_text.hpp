#pragma once

#include <string>
#include <string_view>

namespace octet::data {

// Methods of Python's str, for prompts that must have the characters of Python's. Texts are well-formed UTF-8.

/// text.strip() and text.rstrip()
std::string_view stripped(std::string_view text);
std::string_view stripped_behind(std::string_view text);
/// text.capitalize(), except for letters whose title case is no single letter below U+0590, and the sigma that ends a Greek word.
std::string capitalized(std::string_view text);

}  // namespace octet::data
