#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/new_file.hpp"

namespace octet::io {

/// Storage of a tensor in a GGUF file: numbers, or blocks of 32 values of a row, an F16 factor and 32 signed bytes each.
enum class GgufType : std::uint32_t { f32 = 0, f16 = 1, q8_0 = 8 };
inline constexpr std::int64_t gguf_block = 32;

struct GgufTensor {
  std::string name;
  GgufType type;
  std::vector<std::int64_t> shape;  // [rows, columns] or [n]; blocks divide the last dimension
};

/// The keys of a GGUF file, in their order. Source: ggml's specification of GGUF, version 3.
class GgufKeys {
 public:
  void add(std::string_view key, std::uint32_t value);
  void add(std::string_view key, float value);
  void add(std::string_view key, bool value);
  void add(std::string_view key, std::string_view value);
  void add(std::string_view key, const char* value) { add(key, std::string_view(value)); }
  void add(std::string_view key, const std::vector<std::string>& values);
  void add(std::string_view key, const std::vector<std::int32_t>& values);
  void add(std::string_view key, const std::vector<float>& values);

  std::uint64_t count() const { return count_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void begin(std::string_view key, std::uint32_t type);
  void begin_list(std::string_view key, std::uint32_t type, std::size_t size);

  std::uint64_t count_ = 0;
  std::string bytes_;
};

/// Writes one GGUF file tensor by tensor, as SafetensorsWriter does: the file gets its name in commit().
class GgufWriter {
 public:
  /// ContractError for a tensor that is given twice, or blocks that do not divide its last dimension. Throws IoError.
  GgufWriter(const std::string& path, const GgufKeys&, std::vector<GgufTensor>);

  /// The next bytes of a tensor. ContractError for an unknown name or too many bytes.
  void append(std::string_view name, std::span<const std::byte> bytes);
  /// ContractError names a tensor that lacks bytes. Replaces an existing file.
  void commit();

 private:
  struct TensorSpan {
    std::string name;
    std::uint64_t begin, size, done = 0;
  };
  struct Layout {
    std::vector<TensorSpan> places;
    std::string header;
    std::uint64_t size;
  };
  static Layout layout_of(const GgufKeys&, const std::vector<GgufTensor>&);
  GgufWriter(const std::string& path, Layout&&);

  std::vector<TensorSpan> places_;
  NewFile file_;
};

}  // namespace octet::io
