#include "octet/ops/grouped_gemm/hopper/hopper.hpp"
#include "octet/ops/grouped_gemm/hopper/job.cuh"

// Groups along K of BF16. Operands lie [M, R] and [N, R], or are transposed views of [R, M] and [R, N]; or `a` alone is one.

namespace octet::cuda {
namespace {

using namespace tiles;
template <bool a_turned, bool b_turned>
using Kernel = Form<Groups::columns, Promotion::none, 2, Share::nothing, 4, 3, 8, -1, a_turned, b_turned>;

}  // namespace

bool columns_bf16(Queue queue, const ops::GroupedGemm& g) {
  const Operands o = Operands::of(g);
  const bool halves = g.a.codes.dtype == DType::bf16 && g.b.codes.dtype == DType::bf16 && !g.a.descales && !g.b.descales;
  if (!g.along_k || !halves || (g.b.transposed && !g.a.transposed) || !readable(o)) return false;
  if (g.b.transposed) multiply_by<Bf16, Bf16, Kernel<true, true>>(queue, o);
  else if (g.a.transposed) multiply_by<Bf16, Bf16, Kernel<true, false>>(queue, o);
  else multiply_by<Bf16, Bf16, Kernel<false, false>>(queue, o);
  return true;
}

}  // namespace octet::cuda
