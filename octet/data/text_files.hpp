#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/base/checksum.hpp"

namespace octet::data {

/// The documents of text files.
enum class TextKind : std::uint8_t {
  text,           // plain text, or JSON lines with a member "text"
  conversations,  // JSON lines: conversation_of()
  pairs,          // JSON lines: answer_pair_of()
};
std::string to_text(TextKind);

/// Whether a path of data names text in place of tokens: it ends with .jsonl, .ndjson or .txt, or one of these and .gz or .zst, and is not
/// a folder. It may be a pattern (files_matching).
bool names_text(const std::string& path);
/// Of a file that names_text(), by the members of its first line where it is JSON lines. A line that is none of them counts as a
/// conversation, whose parser names the fault. Throws as ByteStream::read does.
TextKind kind_of_text(const std::string& path);
/// Checksum of the bytes of all files, and of which are JSON lines. Throws DataError, IoError.
Checksum checksum_of_files(const std::vector<std::string>& paths);

}  // namespace octet::data
