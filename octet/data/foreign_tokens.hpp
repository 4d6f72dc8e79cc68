#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/data/mapped_file.hpp"

namespace octet::data {

/// The place of tokens in a file that another program wrote, which is read as it is. Numbers are little-endian.
///
///   llm.c      256 words of 4 bytes: 20240520, 1, tokens (u16), or 20240801, 7, tokens (u32); then the tokens
///   LLM.Q      BIN.TOK and a line end, then words of 4 bytes: version (1 or 2), bytes per token (4), tokens, ids of the vocabulary
///              (version 2), whether masks follow; from byte 1024 on the tokens (i32), of which the last one ends a document
///   Megatron   NAME.bin has tokens alone, u16 or i32; NAME.idx beside it says which, and where documents begin
///   nanoGPT    u16 alone: all other files
///
/// In files of llm.c a document begins with its separator, in those of nanoGPT it ends with one. Sources: llm.c, dev/data/data_common.py;
/// LLM.Q, scripts/tokenize_data.py;
/// nanoGPT, data/openwebtext/prepare.py; Megatron-LM, core/datasets/indexed_dataset.py.
struct ForeignTokens {
  std::string_view program;
  std::uint64_t first_byte = 0, count = 0;
  std::uint32_t bytes_per_token = 2;
  std::uint32_t largest = 0;             // id of all tokens
  std::uint32_t vocab_size = 0;          // that of the program's tokenizer, or if it is unknown, the largest id and 1
  std::vector<std::uint64_t> documents;  // tokens at which one begins, strictly rising
};

/// Whether a path of data names such files: it ends with ".bin". It may be a pattern (files_matching).
bool names_foreign_tokens(const std::string& path);
/// Reads all tokens once. Throws DataError with file, byte and remedy where a header, a size or an index is none of these.
ForeignTokens find_foreign_tokens(const MappedFile&);

/// The folder that has the tokenizer's files of data: a dataset's folder, or that of files of another program.
std::string folder_of_data(const std::string& path);

/// The identity of a tokenizer that no file tells.
inline constexpr const char* unknown_tokenizer = "unknown";

}  // namespace octet::data
