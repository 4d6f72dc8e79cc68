#include "octet/base/utf8.hpp"

namespace octet {
namespace {

bool continues(unsigned c) { return (c & 0xC0) == 0x80; }

}  // namespace

std::size_t utf8_sequence_bytes(std::string_view s) {
  const auto at = [&](std::size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  const unsigned first = at(0), second = at(1);
  if (s.empty()) return 0;
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(second) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80, high = first == 0xED ? 0x9F : 0xBF;
    return second >= low && second <= high && continues(at(2)) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80, high = first == 0xF4 ? 0x8F : 0xBF;
    return second >= low && second <= high && continues(at(2)) && continues(at(3)) ? 4 : 0;
  }
  return 0;
}

std::size_t valid_utf8_bytes(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const std::size_t n = utf8_sequence_bytes(text.substr(i));
    if (n == 0) break;
    i += n;
  }
  return i;
}

}  // namespace octet
