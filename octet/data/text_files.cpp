#include "octet/data/text_files.hpp"

#include <algorithm>
#include <filesystem>

#include "octet/base/error.hpp"
#include "octet/base/path.hpp"
#include "octet/base/text.hpp"
#include "octet/data/byte_stream.hpp"
#include "octet/data/json_lines.hpp"
#include "octet/data/mapped_file.hpp"
#include "octet/data/text_source.hpp"
#include "octet/json/value.hpp"

namespace octet::data {
namespace {

// The first line that is not blank; "" where there is none within the longest one.
std::string first_line(const std::string& path) {
  const auto stream = open_bytes({path, std::filesystem::file_size(path)});
  std::string text;
  for (;;) {
    const std::size_t begin = text.find_first_not_of(" \t\r\n"), before = text.size();
    const std::size_t end = begin == std::string::npos ? begin : text.find('\n', begin);
    if (end != std::string::npos) return text.substr(begin, end - begin);
    if (before < JsonLines::most_line_bytes) stream->read(PieceReader::piece_bytes, text);
    if (text.size() == before) return begin == std::string::npos ? "" : text.substr(begin);
  }
}

json::Value parsed(const std::string& line, const std::string& path) {
  try {
    return json::parse(
        {.text = line,
         .file = path,
         .limits = {.bytes = JsonLines::most_line_bytes, .values = json::Limits::none, .piece = JsonLines::most_line_bytes}});
  } catch (const DataError&) {
    return {};
  }
}

}  // namespace

std::string to_text(TextKind kind) {
  switch (kind) {
    case TextKind::text: return "text";
    case TextKind::conversations: return "conversations";
    case TextKind::pairs: return "pairs of answers";
  }
  return "";
}

bool names_text(const std::string& path) {
  const std::string name = without_compression(path);
  return (is_json_lines(path) || name.ends_with(".txt")) && !is_folder(path);
}

TextKind kind_of_text(const std::string& path) {
  if (!is_json_lines(path)) return TextKind::text;
  const json::Value line = parsed(first_line(path), path);
  const auto has = [&](const char* member) { return line.object() != nullptr && line.find(member) != nullptr; };
  if (has("chosen") && has("rejected")) return TextKind::pairs;
  return has("text") ? TextKind::text : TextKind::conversations;
}

Checksum checksum_of_files(const std::vector<std::string>& paths) {
  std::string all;
  for (const std::string& path : paths) {
    const MappedFile file(path);
    all += format("{} {} {}\n", is_json_lines(path), file.bytes().size(), to_text(checksum_of(file.bytes())));
  }
  return checksum_of(all);
}

}  // namespace octet::data
