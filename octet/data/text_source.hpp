#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "octet/data/byte_stream.hpp"
#include "octet/tokenizer/tokenizer.hpp"

namespace octet::data {

/// The files that `inputs` name, sorted by the bytes of their paths, each once; empty files are separate. `bytes`: of the files as they are
/// stored.
struct Selection {
  std::vector<TextFile> files;
  std::uint64_t bytes = 0, empty_files = 0, left_out_files = 0;
};

/// Resolves the patterns; with `max_bytes` > 0 the list ends before the first file whose content, decompressed, would pass it. Throws
/// ConfigError when a pattern matches nothing or the first file alone passes `max_bytes`, DataError when every file is empty, IoError when
/// one cannot be looked at.
Selection select_files(const std::vector<std::string>& inputs, std::uint64_t max_bytes);

/// Whether a file of this name has JSON lines: it ends with .jsonl or .ndjson, maybe compressed.
bool is_json_lines(const std::string& path);

/// A part of a file's content, small enough to encode in one go. Of plain text: a document or a part of one. Of JSON lines: whole lines.
struct Piece {
  std::string text;
  std::string path;  // of its file
  bool json_lines = false;
  bool begins_document = true, ends_document = true;  // plain text
  std::uint64_t first_line = 1;                       // JSON lines: the number of its first line
  std::uint64_t file_bytes = 0;                       // of the file, read for this piece
};

/// Reads files in order and cuts their content into pieces: plain text where the tokenizer allows, JSON lines (names that end with .jsonl
/// or .ndjson, compressed or not) after a line. The cuts depend on the content alone.
class PieceReader {
 public:
  static constexpr std::size_t piece_bytes = std::size_t(1) << 20;

  /// Both arguments must outlive this.
  PieceReader(const std::vector<TextFile>& files, const tokenizer::Tokenizer& tokenizer) : files_(&files), tokenizer_(&tokenizer) {}
  /// The next piece, or nothing at the end. Throws as ByteStream::read does, and DataError at a line of more than
  /// JsonLines::most_line_bytes.
  std::optional<Piece> next();
  /// Compressed files without content.
  std::uint64_t empty_files() const { return empty_files_; }

 private:
  bool open();
  void fill(std::size_t bytes);
  std::size_t cut_text();
  std::size_t cut_lines();

  const std::vector<TextFile>* files_;
  const tokenizer::Tokenizer* tokenizer_;
  std::size_t file_ = 0;
  std::uint64_t empty_files_ = 0;

  // Of the open file:
  std::unique_ptr<ByteStream> stream_;
  std::string buffer_;  // content that belongs to no piece yet
  bool ended_ = false, json_lines_ = false, begins_ = true;
  std::uint64_t line_ = 1, reported_ = 0;
};

}  // namespace octet::data
