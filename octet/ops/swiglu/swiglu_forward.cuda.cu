#include "octet/ops/quantize/cuda/coded.cuh"
#include "octet/ops/quantize/cuda/few_rows.cuh"
#include "octet/ops/swiglu/gate.cuh"
#include "octet/ops/swiglu/swiglu.kernels.hpp"
#include "octet/ops/swiglu/swiglu.math.hpp"

namespace octet::cuda {
namespace {

template <class T, class Rows, class Gate>
struct SwiGlu {
  static constexpr int outputs = 1;
  static constexpr bool only_packs = Rows::only_packs;
  Rows x;
  int cols;
  Gate gate;

  template <int N>
  __device__ __forceinline__ void make(int row, int col, Pack<N> (&out)[1]) const {
    ops::swiglu_row(typename Rows::template Lanes<N>{col}, cols, gate, x(row), Kept<N>{&out[0]});
  }
};

}  // namespace

void swiglu_forward(Queue queue, const ops::Saved& x, const ops::Sink& y, ops::Gate gate) {
  dispatch<float, Bf16, Fp16>(x.dtype, "swiglu", [&]<class T>() {
    with_saving_rows<T>(x, [&]<class Rows>(const Rows& rows, bool aligned) {
      with_gate<T>(gate, [&]<class Gate>(Gate function) {
        const SwiGlu<T, Rows, Gate> make{rows, int(y.shape[1]), function};
        if (!fill_if_few<T>(queue, y, make, aligned)) fill_sink<T>(queue, y, make, aligned);
      });
    });
  });
}

}  // namespace octet::cuda
