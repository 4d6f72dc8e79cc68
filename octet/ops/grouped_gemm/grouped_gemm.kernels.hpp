#pragma once

#include "octet/ops/gemm/operands.hpp"
#include "octet/ops/grouped_gemm/grouped_gemm.hpp"
#include "octet/tensor/backend.hpp"

namespace octet::ops {

/// Either product as one form. A group of rows [begin, end) of the map:
///   along M: d[begin + m, n] = sum_k a[begin + m, k] * b(e)[n, k];   along K: d[e M + m, n] (+)= sum_k a[m, begin + k] * b[n, begin + k]
struct GroupedGemm {
  const Quantized& a;
  const Quantized& b;
  const RowGroups& groups;
  Tensor d;
  bool along_k = false;        // groups along K
  bool stack_columns = false;  // along M: b(e) is columns [e K, (e + 1) K) of b, otherwise rows [e N, (e + 1) N)
  bool accumulate = false, fast_accumulation = false;

  std::int64_t M() const { return along_k ? a.rows() : groups.tile; }  // of one expert; along M, of one tile
  std::int64_t N() const { return d.shape[1]; }
  std::int64_t K() const { return a.cols(); }  // along K, of all groups
};

/// Group by group, with oneDNN. a, b: the operands as values of `compute`; sums: f32, as many rows as the largest group may have, if d
/// takes rounded or added sums, else empty.
void grouped_gemm_on_cpu(const GroupedGemm&, DType compute, const GemmReady& a, const GemmReady& b, const Tensor& sums);

}  // namespace octet::ops

namespace octet::cuda {
void grouped_gemm(Queue, const ops::GroupedGemm&);
/// The same by a general kernel: any sizes, formats and scale blocks, no workspace, slow.
void plain_grouped_gemm(Queue, const ops::GroupedGemm&);
}  // namespace octet::cuda
