#pragma once

#include "octet/nn/block_context.hpp"
#include "octet/nn/gathered.hpp"
#include "octet/nn/saved_activation.hpp"
#include "octet/ops/swiglu/swiglu.hpp"

namespace octet::nn {

/// The function between the two linears of an Mlp. h: [T, inputs * F] -> [T, F]. With `codes`, forward also encodes h.
struct SwiGlu {  // gate(left half) * right half. Source: Shazeer 2020, "GLU Variants Improve Transformer".
  static constexpr int inputs = 2;
  static constexpr const char* first = ".gate_up";
  ops::Gate gate = ops::Gate::silu;
  void forward(Stream&, const ops::Saved& h, ops::Sink& y, ops::Sink* codes = nullptr) const;
  void backward(Stream&, const Tensor& dy, const ops::Saved& h, ops::Sink& dh) const;
  /// forward() of the product's d, which is undefined afterwards.
  void forward_product(Stream&, const ops::Gemm&, ops::Sink& y) const;
};
struct Gelu {  // the tanh approximation. Source: Hendrycks & Gimpel 2016.
  static constexpr int inputs = 1;
  static constexpr const char* first = ".up";
  void forward(Stream&, const ops::Saved& h, ops::Sink& y, ops::Sink* codes = nullptr) const;
  void backward(Stream&, const Tensor& dy, const ops::Saved& h, ops::Sink& dh) const;
  void forward_product(Stream&, const ops::Gemm&, ops::Sink& y) const;
};

/// y = f(h) Wout^T + b,   h = x Win^T + b, with f = SwiGlu or Gelu. If h is saved as codes, backward computes f from them again.
template <class Activation>
class Mlp {
 public:
  struct Config {
    std::int64_t width, hidden;  // D, F
    bool bias = false;
    Activation activation = {};
    double out_deviation = 0.02;
    bool recompute_activation = false;  // backward computes f again
    bool recomputed = false;            // backward computes all of it again
  };
  struct Saved {
    Linear::Saved in_linear, out_linear;
    ops::Saved h;
    SideWork::Work gather_x = {};  // where backward gathers the input again: fills in_linear.x
  };

  /// A member of the partition has its own columns of h. It outlives this.
  Mlp(const std::string& path, const Config&, scaling::Precision&, const scaling::Site&, Partition& = whole_partition());
  /// The one whose members divide this.
  Partition& partition() const { return partition_; }
  /// The layer that reads x.
  const LinearSite& first() const { return in_; }
  /// y: [T, D], of the own columns alone; empty when only backward's operands are wanted.
  void forward(Stream&, const QTensor& x, const BlockContext&, const Tensor& y, const scaling::Pass&, Saved*);
  /// dy, dx: [T / members, D], the own rows.
  void backward(Stream&, const Tensor& dy, const BlockContext&, const Saved&, const Tensor& dx, const scaling::Pass&);
  void visit(Visitor& visitor) { in_.visit(visitor), out_.visit(visitor); }

 private:
  Partition& partition_;
  Linear in_, out_;
  SavedActivation h_;
  Activation activation_;
  bool recompute_activation_;
};

extern template class Mlp<SwiGlu>;
extern template class Mlp<Gelu>;

}  // namespace octet::nn
