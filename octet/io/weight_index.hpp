#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace octet::io {

/// A Hugging Face "model.safetensors.index.json": which file of the folder holds which tensor.
struct WeightIndex {
  std::vector<std::string> files;                              // plain names, sorted
  std::vector<std::pair<std::string, std::uint32_t>> tensors;  // name and index into `files`, sorted by name
};

/// Reads the JSON of an index, whose origin is not trusted. File names must be plain names that end in ".safetensors"; at most 4,096
/// files and 1,048,576 tensors; no tensor twice. `file` is the name in messages (DataError).
WeightIndex parse_weight_index(std::string_view text, const std::string& file);

/// The JSON of an index whose tensors have `total_bytes` together.
std::string weight_index_json(const WeightIndex& index, std::uint64_t total_bytes);

}  // namespace octet::io
