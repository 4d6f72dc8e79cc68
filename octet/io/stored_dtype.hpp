#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "octet/base/text.hpp"

namespace octet::io {

/// Every element type that a safetensors file may hold, by rising alignment: the format sorts tensors by it, largest first.
/// Source: safetensors 0.7, `Dtype`.
enum class StoredDType : std::uint8_t {
  boolean,
  f4,
  f6_e2m3,
  f6_e3m2,
  u8,
  i8,
  e5m2,
  e4m3,
  e8m0,
  e4m3fnuz,
  e5m2fnuz,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  c64,
  f64,
  i64,
  u64
};

/// The name in files: "BF16", "F8_E4M3".
std::string_view name(StoredDType);
/// The type of that name, or none.
std::optional<StoredDType> stored_dtype(std::string_view name);
/// Bits of one element: 4 to 64.
int element_bits(StoredDType);
using octet::to_text;
inline std::string to_text(StoredDType t) { return std::string(name(t)); }

/// product(shape) * element_bits(dtype), none when it is 2^64 or more. Dimensions must not be negative; an empty shape is one element.
std::optional<std::uint64_t> stored_bits(StoredDType dtype, std::span<const std::int64_t> shape);

}  // namespace octet::io
