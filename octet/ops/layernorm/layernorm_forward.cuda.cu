#include "octet/ops/layernorm/layernorm.kernels.hpp"
#include "octet/ops/layernorm/layernorm.math.hpp"
#include "octet/ops/quantize/cuda/added_rows.cuh"

namespace octet::cuda {
namespace {

using Statistics = ops::LayerNormRow<float>;

struct LayerNormRow {
  const float *w, *b;
  float eps;
  float *mean, *inv_std;

  template <class Lanes, class X>
  __device__ __forceinline__ Statistics find(const Lanes& lanes, std::int64_t cols, std::int64_t r, const X* x) const {
    const Statistics found = ops::layernorm_statistics(lanes, cols, x, eps);
    if (lanes.first()) mean[r] = found.mean, inv_std[r] = found.inv_std;
    return found;
  }
  __device__ __forceinline__ Statistics known(std::int64_t r) const { return {mean[r], inv_std[r]}; }
  template <class Lanes, class X, class Y>
  __device__ __forceinline__ void scale(const Lanes& lanes, std::int64_t cols, const Statistics& row, const X* x, Y* y) const {
    ops::layernorm_scale_row(lanes, cols, x, w, b, row, y);
  }
  __device__ __forceinline__ void prefetch_weights(int cols) const {
    for (const float* p : {w, b}) prefetch(p, unsigned(cols) * sizeof(float));
  }

  struct Held {
    HeldSums<8, 1> w, b;

    template <class Lanes>
    __device__ __forceinline__ Held(const Lanes& lanes, std::int64_t cols, const LayerNormRow& row) {
      lanes.fetch(row.w, cols, w), lanes.fetch(row.b, cols, b);
    }
    template <class Lanes, class X, class Y>
    __device__ __forceinline__ void scale(const Lanes& lanes, std::int64_t cols, const LayerNormRow&, const Statistics& found, const X* x,
                                          Y* y) const {
      ops::layernorm_scale_row(lanes, cols, x, &w, &b, found, y);
    }
  };
};

template <class T>
struct LayerNormTile {
  static constexpr int outputs = 1;
  const T* x;
  const float *w, *b, *mean, *inv_std;
  int cols;

  template <int N>
  __device__ __forceinline__ void make(int row, int col, Pack<N> (&out)[1]) const {
    const Statistics statistics{mean[row], inv_std[row]};
    ops::layernorm_scale_row(PackLanes<N>{col}, cols, row_of(x, row, cols), w, b, statistics, Kept<N>{&out[0]});
  }
};

}  // namespace

void layernorm_forward(Queue queue, const ops::LayerNormForward& a) {
  dispatch<float, Bf16, Fp16>(a.x.dtype, "layernorm", [&]<class T>() {
    float *const mean = a.mean.f32(), *const inv_std = a.inv_std.f32();
    const LayerNormTile<T> tile{a.x.as<T>(), a.w.f32(), a.b.f32(), mean, inv_std, int(a.x.shape[1])};
    const bool aligned = packs_of_eight(a.x) && packs_of_eight(a.w) && packs_of_eight(a.b);
    const LayerNormRow row{a.w.f32(), a.b.f32(), a.eps, mean, inv_std};
    if (a.added) add_and_fill_sink<T>(queue, a.y, a.x, a.added, row, tile, aligned);
    else fill_sink_by_rows<T>(queue, a.y, a.x, row, tile, {.aligned = aligned, .known = a.known});
  });
}

void layernorm_add(Queue queue, const ops::LayerNormAdd& a) {
  add_rows(queue, a.a, a.b, a.sum, LayerNormRow{nullptr, nullptr, a.eps, a.mean.f32(), a.inv_std.f32()});
}

}  // namespace octet::cuda
