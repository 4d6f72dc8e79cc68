#include "octet/base/utf8.hpp"

namespace octet {
namespace {

bool continues(unsigned c) { return (c & 0xC0) == 0x80; }

}  // namespace

Utf8Sequence utf8_sequence(std::string_view s) {
  const auto at = [&](std::size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  const unsigned first = at(0), second = at(1);
  if (s.empty() || (first >= 0x80 && first < 0xC2) || first > 0xF4) return {0, 0};
  const std::size_t whole = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  const unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80, high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (whole == 1 || second < low || second > high) return {1, whole};
  std::size_t bytes = 2;
  while (bytes < whole && continues(at(bytes))) ++bytes;
  return {bytes, whole};
}

std::size_t utf8_sequence_bytes(std::string_view s) {
  const auto [bytes, whole] = utf8_sequence(s);
  return bytes == whole ? whole : 0;
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
