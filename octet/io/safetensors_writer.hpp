#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/new_file.hpp"
#include "octet/io/safetensors_header.hpp"

namespace octet::io {

/// Writes one safetensors file tensor by tensor, so that a model larger than memory can be written. Names, types and shapes come
/// first; the bytes follow in any order of tensors. The file gets its name only in commit(), complete and durable; otherwise nothing
/// remains. IoError when the system refuses (a full disk already in the constructor).
class SafetensorsWriter {
 public:
  /// The layout is laid_out()'s, whose ContractErrors apply.
  SafetensorsWriter(const std::string& path, std::vector<TensorSpec> tensors, const Metadata& metadata = {});

  /// The next bytes of a tensor, all at once or in parts. ContractError for an unknown name or too many bytes.
  void append(std::string_view name, std::span<const std::byte> bytes);
  /// Whether every byte of every tensor was appended.
  bool complete() const { return missing_ == 0; }

  /// Makes the bytes durable and closes the file, still under its temporary name. ContractError names a tensor that lacks bytes.
  void finish();
  /// finish(), then rename. Replaces an existing file.
  void commit();

 private:
  struct Layout {
    std::vector<TensorEntry> tensors;
    std::string header;
  };
  SafetensorsWriter(const std::string& path, Layout&& layout);

  std::vector<TensorEntry> tensors_;     // by name
  std::vector<std::uint64_t> appended_;  // bytes so far, beside tensors_
  std::uint64_t data_offset_ = 0, missing_ = 0;
  NewFile file_;
};

}  // namespace octet::io
