#include "octet/ops/rmsnorm/rmsnorm.kernels.hpp"
#include "octet/ops/rmsnorm/rmsnorm.math.hpp"
#include "octet/ops/quantize/cuda/added_rows.cuh"

namespace octet::cuda {
namespace {

struct RmsNormRow {
  const float* w;
  float offset, eps;
  float* inv_rms;

  template <class Lanes, class X>
  __device__ __forceinline__ float find(const Lanes& lanes, std::int64_t cols, std::int64_t r, const X* x) const {
    const float inv = ops::rmsnorm_statistic(lanes, cols, x, eps);
    if (lanes.first()) inv_rms[r] = inv;
    return inv;
  }
  __device__ __forceinline__ float known(std::int64_t r) const { return inv_rms[r]; }
  template <class Lanes, class X, class Y>
  __device__ __forceinline__ void scale(const Lanes& lanes, std::int64_t cols, float inv, const X* x, Y* y) const {
    ops::rmsnorm_scale_row(lanes, cols, x, w, offset, inv, y);
  }
  __device__ __forceinline__ void prefetch_weights(int cols) const { prefetch(w, unsigned(cols) * sizeof(float)); }

  struct Held {
    HeldSums<8, 1> w;

    template <class Lanes>
    __device__ __forceinline__ Held(const Lanes& lanes, std::int64_t cols, const RmsNormRow& row) {
      lanes.fetch(row.w, cols, w);
    }
    template <class Lanes, class X, class Y>
    __device__ __forceinline__ void scale(const Lanes& lanes, std::int64_t cols, const RmsNormRow& row, float inv, const X* x, Y* y) const {
      ops::rmsnorm_scale_row(lanes, cols, x, &w, row.offset, inv, y);
    }
  };
};

template <class T>
struct RmsNormTile {
  static constexpr int outputs = 1;
  const T* x;
  const float *w, *inv_rms;
  int cols;
  float offset;

  template <int N>
  __device__ __forceinline__ void make(int row, int col, Pack<N> (&out)[1]) const {
    ops::rmsnorm_scale_row(PackLanes<N>{col}, cols, row_of(x, row, cols), w, offset, inv_rms[row], Kept<N>{&out[0]});
  }
};

}  // namespace

void rmsnorm_forward(Queue queue, const ops::RmsNormForward& a) {
  dispatch<float, Bf16, Fp16>(a.x.dtype, "rmsnorm", [&]<class T>() {
    const RmsNormTile<T> tile{a.x.as<T>(), a.w.f32(), a.inv_rms.f32(), int(a.x.shape[1]), a.offset};
    const RmsNormRow row{a.w.f32(), a.offset, a.eps, a.inv_rms.f32()};
    const bool aligned = packs_of_eight(a.x) && packs_of_eight(a.w);
    if (a.added) add_and_fill_sink<T>(queue, a.y, a.x, a.added, row, tile, aligned);
    else fill_sink_by_rows<T>(queue, a.y, a.x, row, tile, {.aligned = aligned, .known = a.known});
  });
}

void rmsnorm_add(Queue queue, const ops::RmsNormAdd& a) {
  add_rows(queue, a.a, a.b, a.sum, RmsNormRow{nullptr, 0, a.eps, a.inv_rms.f32()});
}

}  // namespace octet::cuda
