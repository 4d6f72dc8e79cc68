#include "octet/tokenizer/byte_alphabet.hpp"

#include <array>

#include "octet/tokenizer/unicode.hpp"

namespace octet::tokenizer {
namespace {

constexpr char32_t first_other = 0x100, others = 68;

bool represents_itself(unsigned byte) { return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE; }

struct Alphabet {
  std::array<std::string, 256> characters;
  std::array<unsigned char, others> bytes{};  // of U+0100 to U+0143

  Alphabet() {
    char32_t next = first_other;
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (!represents_itself(byte)) bytes[next - first_other] = static_cast<unsigned char>(byte);
      append_utf8(characters[byte], represents_itself(byte) ? char32_t(byte) : next++);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet made;
  return made;
}

}  // namespace

std::string_view character_of(unsigned char byte) { return alphabet().characters[byte]; }

std::optional<unsigned char> byte_of(char32_t code) {
  if (code < first_other) return represents_itself(code) ? std::optional(static_cast<unsigned char>(code)) : std::nullopt;
  return code < first_other + others ? std::optional(alphabet().bytes[code - first_other]) : std::nullopt;
}

std::optional<std::string> bytes_of_token(std::string_view token) {
  std::string bytes;
  while (!token.empty()) {
    const Character c = first_character(token);
    const auto byte = byte_of(c.code);
    if (!byte) return std::nullopt;
    bytes += char(*byte);
    token.remove_prefix(c.bytes);
  }
  return bytes;
}

std::string token_of_bytes(std::string_view bytes) {
  std::string token;
  for (const char c : bytes) token += character_of(static_cast<unsigned char>(c));
  return token;
}

}  // namespace octet::tokenizer
