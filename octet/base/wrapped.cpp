#include "octet/base/wrapped.hpp"

#include <algorithm>

namespace octet {
namespace {

constexpr std::size_t longest_label = 12;

// Where the text of a line begins.
std::size_t text_of(std::string_view line) {
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t gap = line.find("  ", indent);
  if (gap == line.npos || gap - indent > longest_label) return indent;
  return std::min(line.find_first_not_of(' ', gap), line.size());
}

}  // namespace

std::string wrapped(std::string_view words, std::size_t indent, std::size_t columns) {
  std::string out;
  std::size_t used = indent;
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    const bool first = used == indent;
    if (!first && used + 1 + end - at > columns) out += "\n" + std::string(indent, ' '), used = indent;
    else if (!first) out += ' ', ++used;
    out += words.substr(at, end - at), used += end - at, at = end + 1;
  }
  return out + "\n";
}

std::string wrapped_lines(std::string_view lines, std::size_t columns) {
  std::string out;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    const std::string_view line = lines.substr(at, end - at);
    const std::size_t text = text_of(line);
    if (line.size() <= columns) out += std::string(line) + "\n";
    else out += std::string(line.substr(0, text)) + wrapped(line.substr(text), text, columns);
    at = end + 1;
  }
  return out;
}

}  // namespace octet
