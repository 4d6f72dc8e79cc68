#pragma once

#include "octet/tensor/tensor.hpp"

namespace octet {

/// How the values of one variable of training are stored: a master weight, a gradient or a moment of the optimizer. Scales are powers of
/// two, so an unchanged value is stored again with the same bits.
enum class Storage : std::uint8_t {
  f32,
  bf16,           // BF16, rounded stochastically
  bf16_nearest,   // BF16, rounded to nearest even: an update below half of the last place is lost
  f16,            // FP16 with one scale per tensor. Source: Peng et al. 2023, "FP8-LM", section 2.2
  e4m3,           // E4M3 with one scale per 128 values
  e4m3_tensor,    // E4M3 with one scale per tensor. Source: FP8-LM, section 2.2
  e4m3_expanded,  // E4M3 of sign(x) |x / g|^k, with k and g per 128 values. Source: Xi et al. 2024, "COAT", section 4
  e4m3_root,      // of x >= 0: E4M3 of sqrt(x) with one scale per 128 values
};

/// Consecutive values, in row-major order, that share the scales of a storage by blocks. The last block may be shorter.
inline constexpr std::int64_t storage_block = 128;

/// The values that share scalars.
enum class Scaled : std::uint8_t { none, tensor, blocks };

/// All that is known of a storage but its codec (ops/stored/): sizes, parts of variables, checkpoints, choices and words follow from it.
struct StorageFacts {
  Storage storage;
  std::string_view name;
  DType codes;
  Scaled scaled = Scaled::none;
  DType scales = DType::f32;
  int scalars = 0;              // per tensor, or per block
  std::string_view words = "";  // behind "1 byte per value"
  struct For {
    bool masters = false, gradients = false, m = false, v = false;
  } variables = {};  // for which it can be chosen
};

inline constexpr StorageFacts storages[] = {
    {Storage::f32, "f32", DType::f32, Scaled::none, DType::f32, 0, "", {true, true, true, true}},
    {Storage::bf16, "bf16", DType::bf16, Scaled::none, DType::f32, 0, "", {true, true, true, true}},
    {Storage::bf16_nearest, "bf16_nearest", DType::bf16, Scaled::none, DType::f32, 0, "", {.masters = true}},
    {Storage::f16, "f16", DType::f16, Scaled::tensor, DType::f32, 2, ", a scale per tensor", {.masters = true, .v = true}},
    {Storage::e4m3, "e4m3", DType::e4m3, Scaled::blocks, DType::e8m0, 1, ", a scale per 128 values", {.gradients = true, .m = true}},
    {Storage::e4m3_tensor, "e4m3_tensor", DType::e4m3, Scaled::tensor, DType::f32, 2, ", a scale per tensor", {true, true, true, true}},
    {Storage::e4m3_expanded,
     "e4m3_expanded",
     DType::e4m3,
     Scaled::blocks,
     DType::f32,
     3,
     ", a scale and an exponent per 128 values",
     {.m = true, .v = true}},
    {Storage::e4m3_root, "e4m3_root", DType::e4m3, Scaled::blocks, DType::e8m0, 1, ", its root with a scale per 128 values", {.v = true}},
};
consteval bool in_their_order() {
  for (std::size_t i = 0; i < std::size(storages); ++i)
    if (storages[i].storage != Storage(i)) return false;
  return true;
}
static_assert(in_their_order());

/// On the host.
constexpr const StorageFacts& facts(Storage s) { return storages[std::size_t(s)]; }
constexpr std::string_view name(Storage s) { return facts(s).name; }
inline std::string to_text(Storage s) { return std::string(name(s)); }
/// The type of its codes.
constexpr DType code_type(Storage s) { return facts(s).codes; }

/// A bit per storage, which kernels read, too.
consteval std::uint32_t storages_with(Scaled scaled) {
  std::uint32_t bits = 0;
  for (const StorageFacts& f : storages) bits |= std::uint32_t(f.scaled == scaled) << unsigned(f.storage);
  return bits;
}
inline constexpr std::uint32_t tensor_scaled = storages_with(Scaled::tensor), block_scaled = storages_with(Scaled::blocks);

/// One scale for all values.
constexpr bool scales_tensor(Storage s) { return (tensor_scaled >> unsigned(s) & 1) != 0; }
/// A scale per block of 128 values.
constexpr bool scales_blocks(Storage s) { return (block_scaled >> unsigned(s) & 1) != 0; }

/// Codes are not values by themselves.
constexpr bool has_scales(Storage s) { return scales_tensor(s) || scales_blocks(s); }

/// Storage of values other than 0 that are nearer to 0 than to the least code.
enum class Tiny : std::uint8_t {
  flush,  // 0
  keep,   // the least code: of a second moment, since a first moment over a root of 0 would be divided by eps
};

/// The scalars of `count` values, an empty shape for those that have none:
///   f16, e4m3_tensor   f32  [2]                      descale, and max |x| of the values
///   e4m3, e4m3_root    e8m0 [ceil(count / 128)]      descale
///   e4m3_expanded      f32  [ceil(count / 128), 3]   descale, k, g
/// All bits zero decode to values that are 0.
Shape scales_shape(Storage, std::int64_t count);
DType scales_type(Storage);

/// Codes of a variable and the scalars that decode them. A non-owning view, as a Tensor is.
struct Stored {
  Tensor codes;   // code_type(storage) [shape of the variable]
  Tensor scales;  // scales_type(storage) [scales_shape(storage, count)], empty if the storage has none
  Storage storage = Storage::f32;

  /// Plain values, f32 or bf16. Throws ContractError for another dtype.
  static Stored plain(const Tensor&);
  /// The values, where each is a number by itself. Throws ContractError where scales decode them.
  const Tensor& values() const;
  /// The type in which decoded values are exact: bf16 or f32.
  DType value_type() const { return codes.dtype == DType::bf16 ? DType::bf16 : DType::f32; }
  /// f32 [1], the factor of all codes, of a storage with one scale per tensor; otherwise empty.
  Tensor tensor_descale() const { return scales_tensor(storage) ? scales.rows(0, 1) : Tensor{}; }

  /// Values [begin, begin + n), flat unless they are all, with the scales that decode them. Where blocks have scales, begin is a multiple
  /// of 128; if n is none, values behind the part that share its last scale are padding. Throws ContractError for another begin.
  Stored part(std::int64_t begin, std::int64_t n) const;

  explicit operator bool() const { return bool(codes); }
  const Shape& shape() const { return codes.shape; }
  std::int64_t count() const { return codes.count(); }
  std::size_t bytes() const { return codes.bytes() + (scales ? scales.bytes() : 0); }
};

}  // namespace octet
