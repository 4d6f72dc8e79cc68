#pragma once

#include <variant>

#include "octet/nn/multiplier.hpp"
#include "octet/nn/norm.hpp"

namespace octet::nn {

/// The last stage of a branch, before its output is added to the residual stream: nothing, a factor, or RMSNorm. The first form does
/// nothing and keeps nothing; a norm keeps its input [T, D], also where the rest of the branch is recomputed.
class BranchEnd {
 public:
  struct Config {
    double factor = 1;    // 1: none
    bool normed = false;  // an RMSNorm; then there is no factor
    NormConfig norm = {};
  };
  using Saved = RmsNorm::Input;

  /// The norm has its own copy on each member of the partition, which outlives this.
  BranchEnd(const std::string& path, std::int64_t width, const Config&, Partition&);

  /// Where the branch puts its output, which forward() reads: y itself, or with `saves` memory that lives until backward.
  Tensor room(Stream&, const Tensor& y, const scaling::Pass&, bool saves) const;
  /// y [T, D] from the branch's output in room(). saved may be null.
  void forward(Stream&, const Tensor& out, const Tensor& y, const scaling::Pass&, Saved* saved);
  /// The gradient of the branch's output, from that of y: dy itself, or in scratch.
  Tensor backward(Stream&, const Tensor& dy, const Saved&);
  void visit(Visitor&);

 private:
  struct Unchanged {};
  using Form = std::variant<Unchanged, Multiplier, RmsNorm>;
  static Form make_form(const std::string& path, std::int64_t width, const Config&, Partition&);

  Form form_;
};

}  // namespace octet::nn
