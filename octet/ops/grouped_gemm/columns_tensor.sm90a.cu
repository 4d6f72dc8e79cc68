#include "octet/ops/grouped_gemm/hopper/hopper.hpp"
#include "octet/ops/grouped_gemm/hopper/job.cuh"

// Groups along K, 8-bit codes with one scale per tensor or per row of each operand, which is applied at the end. Products are promoted to
// FP32 every 128 of K, or stay in the tensor cores' sums where accumulation is fast.

namespace octet::cuda {
namespace {

using namespace tiles;
using Promoted = Form<Groups::columns, Promotion::plain, 2, Share::a, 3, 4, 16, 2>;
using Fast = Form<Groups::columns, Promotion::none, 2, Share::a, 4, 3, 8, -1>;

bool takes(const Operands& o) {
  using enum ops::GemmScale;
  const auto a = ops::gemm_scale(o.a), b = ops::gemm_scale(o.b);
  return is_fp8(o.a.codes.dtype) && is_fp8(o.b.codes.dtype) && (a == tensor || a == row) && (b == tensor || b == row) && readable(o);
}

}  // namespace

bool columns_tensor(Queue queue, const ops::GroupedGemm& g) {
  const Operands o = Operands::of(g);
  if (!g.along_k || !takes(o)) return false;
  with_formats(o, [&]<class A, class B>() {
    if (g.fast_accumulation) multiply_by<A, B, Fast>(queue, o);
    else multiply_by<A, B, Promoted>(queue, o);
  });
  return true;
}

}  // namespace octet::cuda
