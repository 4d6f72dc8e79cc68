#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "octet/io/input_file.hpp"
#include "octet/io/stored_dtype.hpp"

namespace octet::io {

/// A tensor to be written: name, type and shape.
struct TensorSpec {
  std::string name;
  StoredDType dtype;
  std::vector<std::int64_t> shape;
};

/// A tensor of a file: bytes [begin, end) of its data section.
struct TensorEntry {
  TensorSpec spec;
  std::uint64_t begin = 0, end = 0;
};

/// Free text beside the tensors: key and value, in order.
using Metadata = std::vector<std::pair<std::string, std::string>>;

/// Beyond these a file is refused before it costs memory.
struct SafetensorsLimits {
  std::uint64_t header_bytes = 100'000'000;  // the format's own limit
  std::size_t tensors = std::size_t(1) << 17;
  std::size_t name_bytes = std::size_t(32) << 20;     // all names together
  std::size_t metadata_bytes = std::size_t(1) << 20;  // all keys and values together
};

inline constexpr std::size_t max_rank = 8;
inline constexpr std::uint64_t max_dimension = std::uint64_t(1) << 48;

/// A safetensors file is u64 N (little-endian), N bytes of JSON, data. This is the JSON, with every rule checked: names unique; shapes
/// and offsets integers; each tensor exactly as long as its shape and type require; the tensors cover the data section up to the end of
/// the file without hole or overlap. Source: the safetensors README and its JSON schema.
struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // by offset
  Metadata metadata;
  std::uint64_t data_offset = 0;            // 8 + N
  bool leading_blank = false;               // blanks before the '{': tolerated, against the format
  std::vector<std::string> unknown_fields;  // tolerated; the first eight
};

/// Reads and checks the header of `file`. DataError naming the file, and the tensor or byte.
SafetensorsHeader read_header(const InputFile& file, const SafetensorsLimits& limits = {});

/// The tensors laid out as the reference writer does, by falling alignment, then name, without gaps. ContractError for a repeated or
/// reserved name, a negative dimension, a rank above 8, or a tensor that has no whole number of bytes.
std::vector<TensorEntry> laid_out(std::vector<TensorSpec> tensors);

/// The first bytes of a file: length, JSON, and spaces up to a multiple of 8. ContractError when the JSON would exceed the format's
/// limit or text is not UTF-8.
std::string header_bytes(const std::vector<TensorEntry>& tensors, const Metadata& metadata);

}  // namespace octet::io
