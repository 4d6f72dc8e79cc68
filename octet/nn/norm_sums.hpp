#pragma once

#include <array>
#include <memory>

#include "octet/nn/normed_rows.hpp"
#include "octet/ops/columns/columns.hpp"

namespace octet::nn {

/// Sums of rows that two RMSNorms read beside each other, of which members of a partition have columns each:
///
///   forward    sum over c of x^2                       from which 1 / rms of each row follows
///   backward   sum over c of dy (offset + w) x / rms   from which the mean of its gradient follows
///
/// One collective has the sums of both norms. Columns of which several members have copies enter once per copy, and their number is counted
/// as often: means are those of all columns, and the gradient of a copy is its share. This form has complete rows, and finds nothing: the
/// norms do. Source: Shoeybi et al. 2019, "Megatron-LM", section 3, of sums over columns.
class NormSums {
 public:
  struct Rows {
    const RmsNorm& norm;
    ops::ColumnsOf x;
  };
  struct Gradients {
    const RmsNorm& norm;
    ops::ColumnsOf dy;
    const NormedRows& saved;
  };
  /// f32 [T] per norm; empty where the norm finds it.
  using OfRows = std::array<Tensor, 2>;

  virtual ~NormSums() = default;
  virtual OfRows statistics(Stream&, const std::array<Rows, 2>&, Region) const { return {}; }
  /// In scratch.
  virtual OfRows means(Stream&, const std::array<Gradients, 2>&) const { return {}; }
};

/// The partition outlives them.
std::unique_ptr<NormSums> norm_sums_of(Partition&);

}  // namespace octet::nn
