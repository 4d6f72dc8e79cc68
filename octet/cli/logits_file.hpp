#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/train/step/engine.hpp"

namespace octet::cli {

/// Token ids [rows, length], row by row.
struct TokenRows {
  std::int64_t rows = 0, length = 0;
  std::vector<std::int64_t> ids;
};

/// The tensor "ids", I32 or I64 [rows, length], of a safetensors file. Throws IoError; DataError when it is missing or of another type or
/// shape.
TokenRows read_token_rows(const std::string& path);

/// Writes the safetensors file `path`: "logits" F32 [rows, length, vocabulary], for every token those of the token after it, and "ids" I64
/// [rows, length]. Throws DataError when an id is not below the model's vocabulary, IoError.
void write_logits(train::Engine&, const TokenRows&, const std::string& path);

}  // namespace octet::cli
