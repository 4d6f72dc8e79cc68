#pragma once

#include <string>
#include <string_view>

namespace octet {

/// Words in lines that end before column `columns`; all but the first begin after `indent` spaces. The first one begins at `indent`, too,
/// whose text the caller has written. Ends with a newline.
std::string wrapped(std::string_view words, std::size_t indent, std::size_t columns);

}  // namespace octet
