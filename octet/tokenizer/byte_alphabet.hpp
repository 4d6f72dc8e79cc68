#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace octet::tokenizer {

/// The characters that represent bytes in the tokens of byte-level tokenizers: printable Latin-1 characters represent themselves, the other
/// 68 bytes are U+0100 to U+0143. Source: the tokenizer of GPT-2, function bytes_to_unicode.
std::string_view character_of(unsigned char byte);
/// The byte of a character of this alphabet.
std::optional<unsigned char> byte_of(char32_t code);
/// The bytes that a token represents; nothing if it has another character.
std::optional<std::string> bytes_of_token(std::string_view token);
std::string token_of_bytes(std::string_view bytes);

}  // namespace octet::tokenizer
