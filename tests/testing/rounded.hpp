#pragma once

#include "octet/tensor/tensor.hpp"
#include "tests/testing/testing.hpp"

// Shared by tests: values as the types of activations store them.

namespace octet::testing {

/// The error of rounding x to a type of activations is at most unit |x| + smallest.
struct RoundingTo {
  double unit, smallest;
};
inline RoundingTo rounding_to(DType dtype) {
  if (dtype == DType::bf16) return {unit_bf16, 0x1p-134};
  if (dtype == DType::f16) return {unit_f16, 0x1p-25};
  return {0, 0};
}

/// x as an element of a tensor.
inline void put(const Tensor& t, std::int64_t i, float x) {
  dispatch<float, Bf16, Fp16>(t.dtype, "put", [&]<class T>() { t.as<T>()[i] = from_float<T>(x); });
}
/// x rounded to a type of activations.
inline float rounded(float x, DType dtype) {
  return dtype == DType::bf16 ? to_float(to_bf16(x)) : dtype == DType::f16 ? to_float(to_fp16(x)) : x;
}

}  // namespace octet::testing
