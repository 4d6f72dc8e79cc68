#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "octet/tokenizer/tokenizer.hpp"

namespace octet::data {

/// A file to tokenize and the size it had when it was chosen.
struct TextFile {
  std::string path;
  std::uint64_t bytes = 0;
};

/// The files that `inputs` name, sorted by the bytes of their paths, each once; empty files are separate.
struct Selection {
  std::vector<TextFile> files;
  std::uint64_t bytes = 0, empty_files = 0, left_out_files = 0;
};

/// Resolves the patterns; with `max_bytes` > 0 the list ends before the first file that would pass it. Throws ConfigError when a pattern
/// matches nothing or the first file alone passes `max_bytes`, DataError when every file is empty, IoError when one cannot be looked at.
Selection select_files(const std::vector<std::string>& inputs, std::uint64_t max_bytes);

/// Bytes [begin, end) of a file, small enough to encode in one go; a large file is several pieces.
struct Piece {
  const TextFile* file = nullptr;
  std::uint64_t begin = 0, end = 0;
  bool begins_document() const { return begin == 0; }
  bool ends_document() const { return end == file->bytes; }
};

/// The piece's text. Throws IoError when it cannot be read, DataError when the file no longer has the size it was chosen with.
std::string read_piece(const Piece&);

/// Deals out the pieces of `files` in order, cut where the tokenizer allows. The cuts depend on the text alone.
class PieceCutter {
 public:
  static constexpr std::uint64_t piece_bytes = std::uint64_t(1) << 20;

  PieceCutter(const std::vector<TextFile>& files, const tokenizer::Tokenizer& tokenizer) : files_(&files), tokenizer_(&tokenizer) {}
  /// The next piece, or nothing at the end. Throws as read_piece() does.
  std::optional<Piece> next();

 private:
  std::uint64_t cut(const TextFile& file) const;

  const std::vector<TextFile>* files_;
  const tokenizer::Tokenizer* tokenizer_;
  std::size_t file_ = 0;
  std::uint64_t begin_ = 0;
};

}  // namespace octet::data
