#include "octet/base/wrapped.hpp"

#include <algorithm>

namespace octet {

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

}  // namespace octet
