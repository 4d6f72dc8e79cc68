#pragma once

#include <string>
#include <string_view>

namespace octet {

/// Words in lines that end before column `columns`; all but the first begin after `indent` spaces. The first one begins at `indent`, too,
/// whose text the caller has written. Ends with a newline.
std::string wrapped(std::string_view words, std::size_t indent, std::size_t columns);

/// Lines of which those longer than `columns` are wrapped: the continuation begins under the text, which is behind a label and two
/// spaces or more, or at the line's own indent.
std::string wrapped_lines(std::string_view lines, std::size_t columns = 80);

}  // namespace octet
