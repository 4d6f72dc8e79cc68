#pragma once

#include "octet/nn/visitor.hpp"
#include "octet/ops/sink/sink.hpp"
#include "octet/scaling/pass.hpp"

namespace octet::nn {

/// y = x / rms(x) * w over the columns of x [T, D]. Source: Zhang & Sennrich 2019, eq. 4.
class RmsNorm {
 public:
  struct Saved {
    Tensor x, inv_rms;  // x is a view: it must live until backward
  };
  RmsNorm(const std::string& path, std::int64_t width, double eps);
  void forward(Stream&, const Tensor& x, ops::Sink& y, const Pass&, Saved*);
  /// dx (+)= gradient; adds to the weight's gradient.
  void backward(Stream&, const Tensor& dy, const Saved&, const Tensor& dx, bool accumulate);
  void visit(Visitor& visitor) { visitor.parameter(weight); }

  Parameter weight;  // [D]

 private:
  float eps_;
};

/// y = (x - mean(x)) / std(x) * w + b over the columns of x [T, D]. Source: Ba et al. 2016, eq. 4.
class LayerNorm {
 public:
  struct Saved {
    Tensor x, mean, inv_std;
  };
  LayerNorm(const std::string& path, std::int64_t width, double eps);
  void forward(Stream&, const Tensor& x, ops::Sink& y, const Pass&, Saved*);
  void backward(Stream&, const Tensor& dy, const Saved&, const Tensor& dx, bool accumulate);
  void visit(Visitor& visitor) { visitor.parameter(weight), visitor.parameter(bias); }

  Parameter weight, bias;  // [D]

 private:
  float eps_;
};

/// A sink for values that nobody quantizes: plain storage in the pass's region when `keep`, in scratch otherwise.
ops::Sink plain_sink(Stream&, Shape, DType, const Pass&, bool keep);

}  // namespace octet::nn
