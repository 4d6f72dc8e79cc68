#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/tokenizer/message.hpp"

namespace octet::data {

struct TokenizeOptions {
  std::string tokenizer = "byte";                        // "byte", a tokenizer.json, or a folder that has one
  std::string end_of_document;                           // the token that ends a document; empty: as open_tokenizer() finds it
  std::uint64_t max_bytes = 0;                           // of text, in whole files from the sorted list; 0 = all
  std::uint64_t shard_bytes = std::uint64_t(256) << 20;  // no shard's file is larger; also roughly the memory used
  int threads = 0;                                       // 0 = one per CPU
  bool force = false;                                    // replace an existing dataset
  bool any_bytes = false;                                // take files that are no text, too, as they are
  std::string field = "text";                            // of JSON lines
  tokenizer::ChatForm chat;                              // JSON lines are conversations, of which only answers are targets
  bool pairs = false;                                    // with chat: they are pairs of answers, each of which is a document
  bool skip_bad_lines = false;                           // of JSON lines: leave them out and count them
};

/// Called with the progress of tokenize(), in bytes of the files as they are stored, from the calling thread. An exception from it ends the
/// work without replacing anything.
class TokenizeProgress {
 public:
  virtual ~TokenizeProgress() = default;
  virtual void advance(std::uint64_t bytes_done, std::uint64_t bytes_total) = 0;
};

struct TokenizeResult {
  std::uint64_t bytes = 0;  // of text, decompressed and without JSON
  std::uint64_t tokens = 0, documents = 0, shards = 0;
  std::uint64_t empty_files = 0;     // skipped: they have no document
  std::uint64_t left_out_files = 0;  // beyond max_bytes
  std::uint64_t empty_lines = 0;     // JSON lines whose text is empty: they have no document
  std::uint64_t bad_lines = 0;       // JSON lines left out
  std::uint64_t replaced = 0;        // invalid UTF-8 sequences that were encoded as U+FFFD
  std::uint64_t separators = 0;      // separators within documents, because the text contains their token
};

/// Writes a dataset folder (docs/token-format.md) at `output` from every file that one of `inputs` (paths or patterns, glob.hpp) matches,
/// sorted by the bytes of their paths. Each file is one document; of JSON lines (names that end with .jsonl or .ndjson) each line is one.
/// With `chat`, all files are JSON lines, each line a conversation (conversation.hpp), which ends as its template says; with `pairs` each
/// line is two documents, the chosen answer before the rejected one.
/// Files whose names end with .gz or .zst are decompressed. One thread reads while the others encode; the bytes written do not depend on
/// their number, and memory does not grow with the text. `max_bytes` ends the selection before the first file that would pass it, counting
/// content, decompressed.
/// The manifest is replaced last: if the process is killed, `output` is either the old or the new dataset.
/// Throws ConfigError (no match, output is there already and not `force`, a bad option), IoError (an unreadable file, a folder that
/// cannot be written), DataError (no text, a file of another kind, a bad line, damaged compressed data, a file that changes while it is
/// read).
TokenizeResult tokenize(const std::vector<std::string>& inputs, const std::string& output, const TokenizeOptions& options,
                        TokenizeProgress* progress = nullptr);

}  // namespace octet::data
