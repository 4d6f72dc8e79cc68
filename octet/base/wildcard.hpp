#pragma once

#include <string_view>

namespace octet {

/// Whether all of `text` matches `pattern`, as in a shell: "*" any run of characters, "?" one, "[a-z]" one of a set, "[!a-z]" one that is
/// not in it, "\*" the character itself. A "[" without its end is an ordinary character,
/// and so are a backslash in a set and one at the end. At most |pattern| |text| comparisons.
bool wildcard_match(std::string_view pattern, std::string_view text);

/// The same without sets and backslashes: "*" any run of characters, "?" one, and every other character is itself.
bool star_match(std::string_view pattern, std::string_view text);

}  // namespace octet
