#include "octet/data/text_source.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/data/glob.hpp"
#include "octet/data/json_lines.hpp"

namespace octet::data {
namespace {

// Enough text before a wanted cut for a tokenizer to find an allowed one.
constexpr std::size_t look_back = 4096;

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

/// The bytes of a file's content; of a compressed file at most a little more than `most`.
std::uint64_t content_bytes(const TextFile& file, std::uint64_t most) {
  if (without_compression(file.path) == file.path) return file.bytes;
  const auto stream = open_bytes(file);
  std::uint64_t bytes = 0;
  for (std::string block; bytes <= most; bytes += block.size()) {
    block.clear();
    stream->read(PieceReader::piece_bytes, block);
    if (block.empty()) break;
  }
  return bytes;
}

}  // namespace

bool is_json_lines(const std::string& path) {
  const std::string name = without_compression(path);
  return name.ends_with(".jsonl") || name.ends_with(".ndjson");
}

Selection select_files(const std::vector<std::string>& inputs, std::uint64_t max_bytes) {
  if (inputs.empty()) throw ConfigError("nothing to tokenize: name the text with --input, such as --input 'docs/**/*.md'");
  Selection selection;
  const auto paths = sorted_paths(inputs);
  std::uint64_t content = 0;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    std::error_code error;
    const std::uint64_t bytes = std::filesystem::file_size(paths[i], error);
    if (error) refuse(paths[i], error.value());
    if (max_bytes > 0) {
      const std::uint64_t own = content_bytes({paths[i], bytes}, max_bytes - content);
      if (own > max_bytes - content) {
        if (selection.files.empty())
          throw ConfigError(
              format("the content of the first file '{}' has more bytes than the limit, {}; raise --max-mb or choose other files",
                     printable(paths[i]), max_bytes));
        selection.left_out_files = paths.size() - i;
        break;
      }
      content += own;
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

std::optional<Piece> PieceReader::next() {
  while (stream_ != nullptr || open()) {
    const std::size_t end = json_lines_ ? cut_lines() : cut_text();
    const bool last = ended_ && end == buffer_.size();
    if (end == 0) {  // a compressed file may be empty
      empty_files_ += begins_ ? 1 : 0;
      stream_.reset();
      continue;
    }
    Piece piece{.text = buffer_.substr(0, end),
                .path = (*files_)[file_ - 1].path,
                .json_lines = json_lines_,
                .begins_document = begins_,
                .ends_document = last,
                .first_line = line_,
                .file_bytes = stream_->consumed() - reported_};
    buffer_.erase(0, end);
    reported_ = stream_->consumed(), begins_ = false;
    if (json_lines_) line_ += std::uint64_t(std::ranges::count(piece.text, '\n'));
    if (last) stream_.reset();
    return piece;
  }
  return std::nullopt;
}

bool PieceReader::open() {
  if (file_ == files_->size()) return false;
  const TextFile& file = (*files_)[file_++];
  stream_ = open_bytes(file);
  buffer_.clear();
  ended_ = false, begins_ = true, line_ = 1, reported_ = 0;
  json_lines_ = is_json_lines(file.path);
  return true;
}

// Reads on until the buffer has that many bytes, or all that are left.
void PieceReader::fill(std::size_t bytes) {
  if (ended_ || buffer_.size() >= bytes) return;
  stream_->read(bytes - buffer_.size(), buffer_);
  ended_ = buffer_.size() < bytes;
}

/// Where the piece ends: at most piece_bytes on, or further where the tokenizer allows no cut before.
std::size_t PieceReader::cut_text() {
  for (std::size_t wanted = piece_bytes;; wanted += look_back) {
    fill(wanted + 1);  // one more shows whether content follows
    if (buffer_.size() <= wanted) return buffer_.size();
    const std::size_t from = wanted - look_back;
    if (const std::size_t place = tokenizer_->last_cut(std::string_view(buffer_).substr(from, look_back))) return from + place;
  }
}

/// Where the piece ends: after the last line within piece_bytes, or after the first line.
std::size_t PieceReader::cut_lines() {
  fill(piece_bytes + 1);
  const std::size_t last = std::string_view(buffer_).substr(0, piece_bytes).rfind('\n');
  if (ended_ && buffer_.size() <= piece_bytes) return buffer_.size();
  if (last != std::string::npos) return last + 1;
  for (std::size_t searched = piece_bytes;;) {
    const std::size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) return end + 1;
    if (ended_) return buffer_.size();
    if (buffer_.size() > JsonLines::most_line_bytes)
      throw DataError(format("{}:{}: a line may have at most {} bytes; split the document, or tokenize it as a text file of its own",
                             printable((*files_)[file_ - 1].path), line_, JsonLines::most_line_bytes));
    searched = buffer_.size();
    fill(buffer_.size() + piece_bytes);
  }
}

}  // namespace octet::data
