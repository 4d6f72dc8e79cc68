#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "octet/io/stored_dtype.hpp"

namespace octet::io {

/// One tensor of a file: row-major little-endian elements at any alignment. Points into the object that returned it, which must outlive it.
struct TensorView {
  std::string_view name;
  StoredDType dtype;
  std::span<const std::int64_t> shape;  // empty: one element
  std::span<const std::byte> bytes;

  /// Number of elements: product(shape).
  std::int64_t count() const {
    std::int64_t n = 1;
    for (const std::int64_t d : shape) n *= d;
    return n;
  }
};

/// The values of an F32, BF16 or F16 tensor, exactly. `out` has count() elements (ContractError). Any other type is a DataError that
/// names the tensor: FP8 codes have no value without their scales.
void to_f32(const TensorView& tensor, std::span<float> out);
std::vector<float> to_f32(const TensorView& tensor);

/// `values` as F32, BF16 or F16 elements, rounded to nearest even; F16 beyond 65504 becomes infinity, NaN stays NaN.
/// ContractError for any other type.
std::vector<std::byte> from_f32(std::span<const float> values, StoredDType dtype);

}  // namespace octet::io
