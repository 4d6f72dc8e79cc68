#include "octet/ops/grouped_gemm/hopper/hopper.hpp"
#include "octet/ops/grouped_gemm/hopper/job.cuh"

// Groups along M of BF16. The stack lies [E N, K], [K, E N], or is the transposed view of [E N, K] in place of [K, E N].

namespace octet::cuda {
namespace {

using namespace tiles;
template <bool turned>
using Kernel = Form<Groups::rows, Promotion::none, 2, turned ? Share::nothing : Share::a, 3, 4, 16, -1, false, turned>;

}  // namespace

bool rows_bf16(Queue queue, const ops::GroupedGemm& g) {
  const Operands o = Operands::of(g);
  const bool halves = g.a.codes.dtype == DType::bf16 && g.b.codes.dtype == DType::bf16 && !g.a.descales && !g.b.descales;
  if (g.along_k || !halves || g.a.transposed || (g.b.transposed && !g.stack_columns) || !readable(o)) return false;
  if (g.b.transposed) multiply_by<Bf16, Bf16, Kernel<true>>(queue, o);
  else multiply_by<Bf16, Bf16, Kernel<false>>(queue, o);
  return true;
}

}  // namespace octet::cuda
