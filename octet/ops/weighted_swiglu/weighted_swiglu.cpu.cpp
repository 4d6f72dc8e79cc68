#include "octet/ops/quantize/cpu/coded.hpp"
#include "octet/ops/quantize/cpu/tile.hpp"
#include "octet/ops/weighted_swiglu/weighted_swiglu.kernels.hpp"
#include "octet/ops/weighted_swiglu/weighted_swiglu.math.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

template <bool limited>
void forward(const ops::Saved& x, const Tensor& w, const ops::ExpertMap& map, float limit, const ops::Sink& y) {
  dispatch<float, Bf16, Fp16>(x.dtype, "weighted_swiglu", [&]<class T>() {
    const std::int64_t cols = y.shape[1];
    const auto* const source = map.source.as<std::int32_t>();
    with_saving_rows<T>(x, [&](auto lanes, auto row) {
      fill_sink<T>(y, cols * 24, [&](std::int64_t r, T* out) {
        if (source[r] < 0) return void(__builtin_memset(out, 0, std::size_t(cols) * sizeof(T)));
        ops::weighted_swiglu_row<limited>(lanes, cols, limit, w.f32()[source[r]], row(r), out);
      });
    });
  });
}

template <bool limited>
void backward(const ops::WeightedSwigluBackward& a, const ops::Sink& dx) {
  dispatch<float, Bf16, Fp16>(a.x.dtype, "weighted_swiglu", [&]<class T>() {
    const std::int64_t cols = a.dy.shape[1];
    const auto* const source = a.map.source.as<std::int32_t>();
    with_rows<T>(a.x, [&](auto lanes, auto row) {
      fill_sink<T>(dx, cols * 40, [&](std::int64_t r, T* out) {
        const std::int32_t choice = source[r];
        if (choice < 0) return void(__builtin_memset(out, 0, std::size_t(2 * cols) * sizeof(T)));
        Vec sum{};
        ops::weighted_swiglu_backward_row<limited>(lanes, cols, a.limit, a.w.f32()[choice], a.dy.as<T>() + r * cols, row(r), out, sum);
        a.dw.f32()[choice] = Lane{}.sum(sum);
      });
    });
  });
}

}  // namespace

void weighted_swiglu_forward(const ops::Saved& x, const Tensor& w, const ops::ExpertMap& map, float limit, const ops::Sink& y) {
  return limit > 0 ? forward<true>(x, w, map, limit, y) : forward<false>(x, w, map, limit, y);
}

void weighted_swiglu_backward(const ops::WeightedSwigluBackward& a, const ops::Sink& dx, const Tensor&) {
  return a.limit > 0 ? backward<true>(a, dx) : backward<false>(a, dx);
}

void clear_rows_without_token(const Tensor& x, const ops::ExpertMap& map) {
  const std::size_t bytes = std::size_t(x.shape[1]) * size_of(x.dtype);
  for (std::int64_t r = 0; r < map.rows(); ++r)
    if (map.source.as<std::int32_t>()[r] < 0) __builtin_memset(x.u8() + std::size_t(r) * bytes, 0, bytes);
}

}  // namespace octet::cpu::OCTET_ISA
