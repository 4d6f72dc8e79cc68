#include "octet/ops/rope/rope.kernels.hpp"
#include "octet/ops/rope/rope.math.hpp"
#include "octet/ops/quantize/cpu/tile.hpp"
#include "octet/tensor/cpu/lanes.hpp"

namespace octet::cpu::OCTET_ISA {

template <class Args>
OCTET_HD std::int64_t place_of(const Args& a, std::int64_t token) {
  const std::int64_t start = a.document_starts ? a.document_starts.template as<std::int32_t>()[token] : 0;
  return a.heads.place(token % a.heads.sequence) - start;
}

// One token at a place: all query and key heads of its row.
template <bool opposite, class Args, class T>
OCTET_HD void rope_token(const Args& a, std::int64_t place, const T* x, T* y) {
  const ops::QkvShape& shape = a.heads;
  const ops::RopeTable& table = a.table;
  const std::int64_t half = shape.head_dim / 2, at = place * half;
  for (std::int64_t h = 0; h < shape.heads + shape.kv_heads; ++h)
    ops::rope_head<opposite>(Lane{}, half, x + h * shape.head_dim, table.cos.f32() + at, table.sin.f32() + at, y + h * shape.head_dim);
}

void rope_forward(const ops::RopeForward& a) {
  dispatch<float, Bf16, Fp16>(a.qkv.dtype, "rope", [&]<class T>() {
    const std::int64_t cols = a.qkv.shape[1];
    for_each(a.qkv.shape[0], cols * 8, [&](std::int64_t t) {
      T* const row = a.qkv.as<T>() + t * cols;
      rope_token<false>(a, a.places ? a.places.as<std::int32_t>()[t] : place_of(a, t), row, row);
    });
  });
}

void rope_backward(const ops::RopeBackward& a) {
  dispatch<float, Bf16, Fp16>(a.dqkv.dtype, "rope", [&]<class T>() {
    const std::int64_t cols = a.dqkv.shape[1], values = a.heads.value_column(0);
    fill_sink<T>(a.y, cols * 8, [&](std::int64_t t, T* y) {
      const T* const x = a.dqkv.as<T>() + t * cols;
      rope_token<true>(a, place_of(a, t), x, y);
      if (x != y) __builtin_memcpy(y + values, x + values, std::size_t(cols - values) * sizeof(T));
    });
  });
}

}  // namespace octet::cpu::OCTET_ISA
