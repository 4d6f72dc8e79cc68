#include "octet/io/stored_dtype.hpp"

#include <iterator>

namespace octet::io {
namespace {

struct Row {
  std::string_view name;
  int bits;
};
constexpr Row rows[] = {{"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
                        {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
                        {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
                        {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}};
static_assert(std::size(rows) == std::size_t(StoredDType::u64) + 1);

}  // namespace

std::string_view name(StoredDType t) { return rows[std::size_t(t)].name; }
int element_bits(StoredDType t) { return rows[std::size_t(t)].bits; }

std::optional<StoredDType> stored_dtype(std::string_view name) {
  for (std::size_t i = 0; i < std::size(rows); ++i)
    if (rows[i].name == name) return StoredDType(i);
  return {};
}

std::optional<std::uint64_t> stored_bits(StoredDType dtype, std::span<const std::int64_t> shape) {
  std::uint64_t bits = 1;
  for (const std::int64_t n : shape)
    if (__builtin_mul_overflow(bits, std::uint64_t(n), &bits)) return {};
  if (__builtin_mul_overflow(bits, std::uint64_t(element_bits(dtype)), &bits)) return {};
  return bits;
}

}  // namespace octet::io
