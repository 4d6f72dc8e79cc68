#include "octet/ops/grouped_gemm/hopper/hopper.hpp"
#include "octet/ops/grouped_gemm/hopper/job.cuh"

// Groups along K, 1x128 scales of both operands; and the dense product of such operands. Products are promoted to FP32 and scaled every 128
// of K.

namespace octet::cuda {
namespace {

using namespace tiles;
template <Share share>
void run(Queue queue, const Operands& o) {
  using Kernel = Form<Groups::columns, Promotion::line, 2, share, 3, 4, 16, 2>;
  with_formats(o, [&]<class A, class B>() { multiply_by<A, B, Kernel>(queue, o); });
}

bool takes(const Operands& o) {
  using enum ops::GemmScale;
  return is_fp8(o.a.codes.dtype) && is_fp8(o.b.codes.dtype) && ops::gemm_scale(o.a) == row_128 && ops::gemm_scale(o.b) == row_128 &&
         readable(o);
}

}  // namespace

bool columns_1x128_1x128(Queue queue, const ops::GroupedGemm& g) {
  const Operands o = Operands::of(g);
  if (!g.along_k || !takes(o)) return false;
  return pairs(o) ? run<Share::a>(queue, o) : run<Share::nothing>(queue, o), true;
}

bool dense_1x128_1x128(Queue queue, const ops::Gemm& g) {
  const Operands o = Operands::of(g);
  return takes(o) && (run<Share::nothing>(queue, o), true);
}

bool dense_1x128_1x128_in_pairs(Queue queue, const ops::Gemm& g) {
  const Operands o = Operands::of(g);
  return takes(o) && pairs(o) && (run<Share::a>(queue, o), true);
}

}  // namespace octet::cuda
