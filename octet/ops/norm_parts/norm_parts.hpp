#pragma once

#include "octet/ops/columns/columns.hpp"

namespace octet::ops {

/// Sums over `columns` of each row of a matrix, f32 [T], from which an RMSNorm of wider rows follows where others have their other columns:
///
///   norm_squares     sums[t] = sum over c of x[t, c]^2
///   norm_products    sums[t] = sum over c of dy[t, c] (offset + w[c]) x[t, c] inv_rms[t],   of which the gradient needs the mean
///
/// Sums are FP32. dy and x: [T, C] of one dtype, f32, bf16 or f16; w: f32 [columns]; inv_rms: f32 [T].
struct NormSquares {
  ColumnsOf x;
  std::int64_t columns = 0;
  Tensor sums;
};
struct NormProducts {
  ColumnsOf dy, x;
  Tensor w, inv_rms;
  Tensor sums;
  float offset = 0;
};
/// Throw ContractError on other shapes or dtypes, and on columns that a matrix does not have.
void norm_squares(Stream&, const NormSquares&);
void norm_products(Stream&, const NormProducts&);

/// In place, of the sums of all parts, with `columns` in all: the statistic 1 / sqrt(sums[t] / columns + eps) of ops::rmsnorm_forward(),
/// and the mean sums[t] / columns of ops::rmsnorm_backward().
struct NormOfSums {
  Tensor sums;
  std::int64_t columns = 0;
  float eps = 0;
};
void norm_factors(Stream&, const NormOfSums&);
void norm_means(Stream&, const NormOfSums&);

}  // namespace octet::ops
