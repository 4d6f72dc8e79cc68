#pragma once

#include <cstddef>
#include <string_view>

namespace octet {

/// The UTF-8 sequence that `s` begins with: its bytes as far as they are those of a well-formed one, and how many that has by its first
/// byte, or 0. Source: Unicode 15, table 3-7.
struct Utf8Sequence {
  std::size_t bytes, whole;
};
Utf8Sequence utf8_sequence(std::string_view s);
/// Bytes of the well-formed UTF-8 sequence that `s` begins with, or 0.
std::size_t utf8_sequence_bytes(std::string_view s);
/// Bytes at the beginning of `text` that are well-formed UTF-8: all of them where it is UTF-8.
std::size_t valid_utf8_bytes(std::string_view text);

}  // namespace octet
