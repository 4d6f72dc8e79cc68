#include "octet/data/text_check.hpp"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"

namespace octet::data {
namespace {

constexpr std::size_t looked_at = 8192;  // bytes of a file

constexpr const char* as_lines = "write its texts as JSON lines (docs/token-format.md has five lines of Python) and tokenize these";
constexpr const char* unpack = "unpack it and tokenize the files in it";
constexpr const char* elsewhere = "choose files of text, or a narrower pattern such as 'FOLDER/**/*.txt'";
constexpr const char* tokens = "tokens of other programs are not read: tokenize the text from which they were made";

struct Kind {
  std::string_view name, remedy;
  std::vector<std::string_view> endings;  // of its files' names
  std::vector<std::string_view> begins;   // of its files
};

using namespace std::string_view_literals;

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"a Parquet table", as_lines, {".parquet"}, {"PAR1\x15"sv}},
      {"an Arrow table", as_lines, {".arrow", ".feather"}, {"ARROW1\0"sv, "FEA1\0"sv}},
      {"an Avro, ORC or HDF5 file", as_lines, {".avro", ".orc", ".h5", ".hdf5"}, {"Obj\x01"sv, "ORC\x0a"sv, "\x89HDF\r\n"sv}},
      {"a SQLite database", as_lines, {".sqlite", ".sqlite3"}, {"SQLite format 3\0"sv}},
      {"a NumPy array", tokens, {".npy", ".npz"}, {"\x93NUMPY"sv}},
      {"a file of tokens or weights of another program", tokens, {".bin", ".idx"}, {"MMIDIDX\0"sv}},
      {"a shard of Octet's tokens", "name the folder of the dataset with --data", {".tok"}, {"OCTETTOK"}},
      {"a file of weights", elsewhere, {".safetensors", ".gguf", ".pt", ".pth", ".pkl"}, {"GGUF\x02\0"sv, "GGUF\x03\0"sv}},
      {"data compressed with xz, bzip2 or lz4",
       "decompress it, or compress it with gzip or Zstandard, which are read (.gz, .zst)",
       {".xz", ".bz2", ".lz4", ".lzma"},
       {"\xFD\x37zXZ\0"sv, "BZh91AY", "\x04\x22\x4D\x18"sv}},
      {"data compressed with gzip or Zstandard", "end its name with .gz or .zst", {}, {"\x1F\x8B\x08"sv, "\x28\xB5\x2F\xFD"sv}},
      {"an archive", unpack, {".zip", ".7z", ".rar", ".tar", ".tgz"}, {"PK\x03\x04"sv, "7z\xBC\xAF\x27\x1C"sv, "Rar!\x1A\x07"sv}},
      {"an image, a film or a sound",
       elsewhere,
       {".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tiff", ".ico", ".mp3", ".mp4", ".wav", ".ogg", ".flac"},
       {"\x89PNG\r\n"sv, "\xFF\xD8\xFF"sv, "GIF87a", "GIF89a", "OggS\0"sv, "fLaC\0"sv}},
      {"a PDF or office document", "convert it to plain text first", {".pdf", ".docx", ".xlsx", ".pptx", ".odt", ".epub"}, {"%PDF-"}},
      {"a program or a library", elsewhere, {".so", ".o", ".a", ".exe", ".dll", ".pyc", ".class"}, {"\x7F\x45LF"sv, "!<arch>\n"}},
      {"text in UTF-16 or UTF-32", "convert it to UTF-8: iconv -f UTF-16 -t UTF-8", {}, {"\xFF\xFE"sv, "\xFE\xFF"sv, "\0\0\xFE\xFF"sv}},
  };
  return all;
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return text;
}

}  // namespace

std::string why_no_text(const std::string& path, std::string_view begin, bool lines) {
  const auto text = [](const Kind& k) { return format("it is {}: {}", k.name, k.remedy); };
  for (const Kind& k : kinds())
    if (std::ranges::any_of(k.begins, [&](std::string_view magic) { return begin.starts_with(magic); })) return text(k);
  const std::string name = lower(without_compression(path));
  for (const Kind& k : kinds())
    if (std::ranges::any_of(k.endings, [&](std::string_view ending) { return name.ends_with(ending); })) return text(k);
  const std::size_t zero = begin.find('\0');
  if (lines || zero == begin.npos) return "";
  return format("it is no text, since byte {} is 0: {}", zero, elsewhere);
}

void require_text(const Selection& selection, const char* otherwise) {
  for (const TextFile& file : selection.files) {
    std::string begin;
    open_bytes(file)->read(looked_at, begin);
    const std::string why = why_no_text(file.path, begin, is_json_lines(file.path));
    if (!why.empty()) throw DataError(format("{}: {}{}", printable(file.path), why, otherwise));
  }
}

std::string why_no_text(const std::string& path) {
  std::error_code error;
  const std::uint64_t bytes = std::filesystem::file_size(path, error);
  std::string begin;
  try {
    if (!error && bytes > 0) open_bytes({path, bytes})->read(looked_at, begin);
  } catch (const Error&) {
    return "";  // said by those that read it
  }
  return why_no_text(path, begin);
}

}  // namespace octet::data
