#include "octet/ops/grouped_gemm/hopper/hopper.hpp"
#include "octet/ops/grouped_gemm/hopper/job.cuh"

// Groups along M, 1x128 scales of `a` and 128x128 ones of the stack; and the dense product of such operands. Products are promoted to FP32
// and scaled every 128 of K.

namespace octet::cuda {
namespace {

using namespace tiles;
template <Share share>
void run(Queue queue, const Operands& o) {
  using Kernel = Form<Groups::rows, Promotion::square, 2, share, 3, 4, 16, -1>;
  with_formats(o, [&]<class A, class B>() { multiply_by<A, B, Kernel>(queue, o); });
}

bool takes(const Operands& o) {
  using enum ops::GemmScale;
  return is_fp8(o.a.codes.dtype) && is_fp8(o.b.codes.dtype) && ops::gemm_scale(o.a) == row_128 && ops::gemm_scale(o.b) == square_128 &&
         readable(o);
}

}  // namespace

bool rows_1x128_128x128(Queue queue, const ops::GroupedGemm& g) {
  const Operands o = Operands::of(g);
  if (g.along_k || !takes(o)) return false;
  if (g.groups.size() > 1 && (g.stack_columns ? g.K() : g.N()) % 128 != 0) return false;  // a block would have two experts' values
  return run<Share::nothing>(queue, o), true;
}

bool dense_1x128_128x128(Queue queue, const ops::Gemm& g) {
  const Operands o = Operands::of(g);
  return takes(o) && (run<Share::nothing>(queue, o), true);
}

bool dense_1x128_128x128_in_pairs(Queue queue, const ops::Gemm& g) {
  const Operands o = Operands::of(g);
  return takes(o) && o.d.shape[0] > 2 * wave_rows && (run<Share::b>(queue, o), true);
}

}  // namespace octet::cuda
