#include "octet/ops/grouped_gemm/hopper/hopper.hpp"
#include "octet/ops/grouped_gemm/hopper/job.cuh"

// Groups along K of BF16. Both operands lie [M, R] and [N, R], or both are transposed views of [R, M] and [R, N].

namespace octet::cuda {
namespace {

using namespace tiles;
template <bool turned>
using Kernel = Form<Groups::columns, Promotion::none, 2, 1, 3, 4, -1, turned, turned>;

}  // namespace

bool columns_bf16(Queue queue, const ops::GroupedGemm& g) {
  const Operands o = Operands::of(g);
  const bool halves = g.a.codes.dtype == DType::bf16 && g.b.codes.dtype == DType::bf16 && !g.a.descales && !g.b.descales;
  if (!g.along_k || !halves || g.a.transposed != g.b.transposed || !readable(o)) return false;
  if (g.a.transposed) launch<Bf16, Bf16, Kernel<true>>(queue, job_of<Kernel<true>>(o));
  else launch<Bf16, Bf16, Kernel<false>>(queue, job_of<Kernel<false>>(o));
  return true;
}

}  // namespace octet::cuda
