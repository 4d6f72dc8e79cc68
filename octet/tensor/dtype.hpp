#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "octet/base/check.hpp"
#include "octet/numerics/formats.hpp"

namespace octet {

enum class DType : std::uint8_t { f32, bf16, f16, e4m3, e5m2, e8m0, u8, i32, i64, f64 };

constexpr std::string_view name(DType t) {
  constexpr std::string_view names[] = {"f32", "bf16", "f16", "e4m3", "e5m2", "e8m0", "u8", "i32", "i64", "f64"};
  return names[std::size_t(t)];
}
constexpr std::size_t size_of(DType t) {
  constexpr std::size_t sizes[] = {4, 2, 2, 1, 1, 1, 1, 4, 8, 8};
  return sizes[std::size_t(t)];
}
/// A type of activations and of their gradients.
constexpr bool is_activation(DType t) { return t == DType::f32 || t == DType::bf16 || t == DType::f16; }
constexpr bool is_fp8(DType t) { return t == DType::e4m3 || t == DType::e5m2; }
/// Largest finite value of an 8-bit format; throws ContractError for any other dtype.
inline float format_max(DType t) {
  check(is_fp8(t), "format_max: {} is not an 8-bit format", name(t));
  return t == DType::e4m3 ? E4M3::max : E5M2::max;
}
inline std::string to_text(DType t) { return std::string(name(t)); }

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<Bf16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<Fp16> {
  static constexpr DType value = DType::f16;
};
template <>
struct DTypeOf<E4M3> {
  static constexpr DType value = DType::e4m3;
};
template <>
struct DTypeOf<E5M2> {
  static constexpr DType value = DType::e5m2;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::i64;
};
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

[[noreturn]] void unsupported_dtype(std::string_view op, DType got, std::initializer_list<DType> supported);

/// Calls f.template operator()<T>() for the one T among Ts whose DType is `dtype`.
/// An op states the types it supports where it dispatches; any other dtype is a ContractError that lists them.
template <class... Ts, class F>
void dispatch(DType dtype, std::string_view op, F&& f) {
  const bool found = ((dtype == dtype_of<Ts> && (f.template operator()<Ts>(), true)) || ...);
  if (!found) unsupported_dtype(op, dtype, {dtype_of<Ts>...});
}

}  // namespace octet
