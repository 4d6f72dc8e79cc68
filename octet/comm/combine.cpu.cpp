#include "octet/comm/combine.kernels.hpp"
#include "octet/comm/combine.math.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

// Values whose sum is made at once, in registers or the first cache.
constexpr int block = 256;

using comm::narrow, comm::wide;

template <class T>
OCTET_HD void add_block(const void* const* in, std::int64_t inputs, std::int64_t at, int n, T* to) {
  decltype(wide(T())) sum[block];
  for (int i = 0; i < n; ++i) sum[i] = wide(static_cast<const T*>(in[0])[at + i]);
  for (std::int64_t r = 1; r < inputs; ++r)
    for (int i = 0; i < n; ++i) sum[i] += wide(static_cast<const T*>(in[r])[at + i]);
  for (int i = 0; i < n; ++i) to[at + i] = narrow<T>(sum[i]);
}

template <class T>
OCTET_HD auto comparable(T x) {
  if constexpr (std::is_same_v<T, Bf16>) return to_float(x);
  else return x;
}

template <class T>
OCTET_HD void max_block(const void* const* in, std::int64_t inputs, std::int64_t at, int n, T* to) {
  for (int i = 0; i < n; ++i) {
    T largest = static_cast<const T*>(in[0])[at + i];
    for (std::int64_t r = 1; r < inputs; ++r) {
      const T x = static_cast<const T*>(in[r])[at + i];
      if (comparable(x) > comparable(largest) || comparable(largest) != comparable(largest)) largest = x;
    }
    to[at + i] = largest;
  }
}

template <class T>
void combine_as(comm::Reduction reduction, const void* const* in, std::int64_t inputs, const Tensor& to) {
  for_each_piece(to.count(), std::int64_t(sizeof(T)) * (inputs + 1), [&](std::int64_t begin, std::int64_t n) {
    for (std::int64_t at = begin; at < begin + n; at += block) {
      const int part = int(begin + n - at < block ? begin + n - at : block);
      if (reduction == comm::Reduction::sum) add_block(in, inputs, at, part, to.as<T>());
      else max_block(in, inputs, at, part, to.as<T>());
    }
  });
}

}  // namespace

void combine(comm::Reduction reduction, const void* const* in, std::int64_t inputs, const Tensor& to) {
  switch (to.dtype) {
    case DType::f32: return combine_as<float>(reduction, in, inputs, to);
    case DType::bf16: return combine_as<Bf16>(reduction, in, inputs, to);
    case DType::f64: return combine_as<double>(reduction, in, inputs, to);
    case DType::i32: return combine_as<std::int32_t>(reduction, in, inputs, to);
    default: return combine_as<std::int64_t>(reduction, in, inputs, to);
  }
}

}  // namespace octet::cpu::OCTET_ISA
