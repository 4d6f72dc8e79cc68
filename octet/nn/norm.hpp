#pragma once

#include "octet/nn/partition.hpp"
#include "octet/nn/visitor.hpp"
#include "octet/ops/quantize/sink.hpp"
#include "octet/scaling/pass.hpp"

namespace octet::nn {

/// The name by which observers see a norm's factor per row, 1 / rms or 1 / standard deviation, f32, with the path of its weight. The factor
/// is 0 where the squares of a row overflow.
inline constexpr std::string_view row_factor = "row_factor";

/// Added to the mean square (or variance) of a row, and to the weight of an RMSNorm, which then begins as 1 - offset.
struct NormConfig {
  double eps = 1e-5;
  float offset = 0;

  NormConfig() = default;
  NormConfig(double eps, float offset = 0) : eps(eps), offset(offset) {}
};

/// y = x / rms(x) * (offset + w) over the columns of x [T, D]. Source: Zhang & Sennrich 2019, eq. 4.
class RmsNorm {
 public:
  /// Rows that are normalised, and their statistics: room for them, until they are `known`. x is a view. Usually x is a sum already. Where
  /// `branch` has memory, the output of a branch comes there, and `waits` until forward() or complete() adds it to x.
  struct Input {
    Tensor x, inv_rms;
    bool known = false;
    Tensor branch = {};
    bool waits = false;
  };
  RmsNorm(const std::string& path, std::int64_t width, const NormConfig&, Partition& = whole_partition());
  /// Of `width` columns of wider rows: `cut` is that of the weight. Statistics and means follow from all columns (NormSums).
  RmsNorm(const std::string& path, std::int64_t width, const NormConfig&, Cut cut);
  /// With room for statistics in `region`.
  static Input input(Stream&, const Tensor& x, Region);
  /// The same, with memory for a branch: its sum is made by the next norm, so that few rows take one launch.
  static Input waiting_input(Stream&, const Tensor& x, Region);
  /// sum.x = a + b and its statistics; sum.x may be a or b. Any norm of one width and eps may follow. With sum.branch, which b is, a is
  /// sum.x, and the sum waits.
  void add(Stream&, const Tensor& a, const Tensor& b, Input& sum) const;
  /// Adds a waiting branch, and finds statistics that are not known yet.
  void forward(Stream&, Input& x, ops::Sink& y) const;
  /// Adds a waiting branch.
  void complete(Stream&, Input& x) const;
  /// dx (+)= gradient; adds to the weight's gradient. x is as forward left it. mean: as in ops::RmsNormBackward.
  void backward(Stream&, const Tensor& dy, const Input& x, const Tensor& dx, bool accumulate, const Tensor& mean = {});
  float eps() const { return eps_; }
  float offset() const { return offset_; }
  void visit(Visitor& visitor) { visitor.parameter(weight); }

  Parameter weight;  // [D]

 private:
  float eps_, offset_;
};

/// y = (x - mean(x)) / std(x) * w + b over the columns of x [T, D]. Source: Ba et al. 2016, eq. 4.
class LayerNorm {
 public:
  struct Input {
    Tensor x, mean, inv_std;
    bool known = false;
    Tensor branch = {};  // as RmsNorm has it
    bool waits = false;
  };
  /// Without an offset.
  LayerNorm(const std::string& path, std::int64_t width, const NormConfig&, Partition& = whole_partition());
  static Input input(Stream&, const Tensor& x, Region);
  static Input waiting_input(Stream&, const Tensor& x, Region);
  void add(Stream&, const Tensor& a, const Tensor& b, Input& sum) const;
  void forward(Stream&, Input& x, ops::Sink& y) const;
  void complete(Stream&, Input& x) const;
  void backward(Stream&, const Tensor& dy, const Input& x, const Tensor& dx, bool accumulate);
  void visit(Visitor& visitor) { visitor.parameter(weight), visitor.parameter(bias); }

  Parameter weight, bias;  // [D]

 private:
  float eps_;
};

/// y = x: in the place of a norm where a branch reads the residual stream as it is. A norm that comes next finds its own statistics. Sums
/// do not wait for it.
class NoNorm {
 public:
  using Input = RmsNorm::Input;
  NoNorm(const std::string&, std::int64_t, const NormConfig&, Partition& = whole_partition()) {}
  static Input input(Stream&, const Tensor& x, Region) { return {x, {}}; }
  void add(Stream&, const Tensor& a, const Tensor& b, Input& sum) const;
  void forward(Stream&, Input& x, ops::Sink& y) const;
  void backward(Stream&, const Tensor& dy, const Input& x, const Tensor& dx, bool accumulate);
  void visit(Visitor&) {}
};

}  // namespace octet::nn
