#include "octet/data/text_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "octet/base/descriptor.hpp"
#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/data/glob.hpp"

namespace octet::data {
namespace {

// Enough text before a wanted cut for a tokenizer to find an allowed one.
constexpr std::uint64_t look_back = 4096;

[[noreturn]] void refuse(const std::string& path, int reason) {
  throw IoError(
      format("cannot read '{}': {}; make it readable or choose other files", printable(path), std::generic_category().message(reason)));
}

std::vector<std::string> sorted_paths(const std::vector<std::string>& inputs) {
  std::vector<std::string> paths;
  for (const std::string& input : inputs) {
    const auto found = files_matching(input);
    if (found.empty())
      throw ConfigError(
          format("--input '{}' matches no file; check the path, and quote a pattern so that `**` reaches this program", printable(input)));
    paths.insert(paths.end(), found.begin(), found.end());
  }
  std::ranges::sort(paths);
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

}  // namespace

Selection select_files(const std::vector<std::string>& inputs, std::uint64_t max_bytes) {
  if (inputs.empty()) throw ConfigError("nothing to tokenize: name the text with --input, such as --input 'docs/**/*.txt'");
  Selection selection;
  const auto paths = sorted_paths(inputs);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    std::error_code error;
    const std::uint64_t bytes = std::filesystem::file_size(paths[i], error);
    if (error) refuse(paths[i], error.value());
    if (max_bytes > 0 && bytes > max_bytes - selection.bytes) {
      if (selection.files.empty())
        throw ConfigError(format("the first file '{}' has {} bytes, the limit is {}; raise --max-bytes or choose other files",
                                 printable(paths[i]), bytes, max_bytes));
      selection.left_out_files = paths.size() - i;
      break;
    }
    if (bytes == 0) {
      ++selection.empty_files;
      continue;
    }
    selection.files.push_back({paths[i], bytes});
    selection.bytes += bytes;
  }
  if (selection.files.empty())
    throw DataError(format("{}: the corpus has no text: all {} files that --input matches are empty; choose files with text",
                           printable(paths.front()), paths.size()));
  return selection;
}

std::string read_piece(const Piece& piece) {
  const std::string& path = piece.file->path;
  const Descriptor file(path, O_RDONLY | O_NONBLOCK);
  struct stat facts {};
  if (!file.ok() || ::fstat(file.number(), &facts) != 0) refuse(path, errno);
  std::string text(piece.end - piece.begin, '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t n = ::pread(file.number(), text.data() + filled, text.size() - filled, off_t(piece.begin + filled));
    if (n == 0) break;
    if (n < 0 && errno != EINTR) refuse(path, errno);
    if (n > 0) filled += std::size_t(n);
  }
  if (filled < text.size() || std::uint64_t(facts.st_size) != piece.file->bytes)
    throw DataError(format("{}: the file had {} bytes when it was chosen, now it has {}; leave it alone while it is tokenized",
                           printable(path), piece.file->bytes, (long long)facts.st_size));
  return text;
}

std::optional<Piece> PieceCutter::next() {
  if (file_ == files_->size()) return std::nullopt;
  const TextFile& file = (*files_)[file_];
  const Piece piece{&file, begin_, cut(file)};
  begin_ = piece.end;
  if (piece.ends_document()) ++file_, begin_ = 0;
  return piece;
}

/// Where the piece from begin_ ends: at most piece_bytes on, or further where the tokenizer allows no cut before.
std::uint64_t PieceCutter::cut(const TextFile& file) const {
  for (std::uint64_t wanted = begin_ + piece_bytes; wanted < file.bytes; wanted += look_back) {
    const std::uint64_t from = wanted - look_back;
    if (const std::size_t place = tokenizer_->last_cut(read_piece({&file, from, wanted}))) return from + place;
  }
  return file.bytes;
}

}  // namespace octet::data
