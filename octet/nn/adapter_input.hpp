#pragma once

#include <functional>
#include <string>

#include "octet/nn/dropout_draws.hpp"
#include "octet/scaling/pass.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::nn {

/// The matrix that an adapter multiplies, made of the input x [T, in] of its layer. This form is x itself.
class AdapterInput {
 public:
  virtual ~AdapterInput() = default;
  /// Of values [T, in] in forward, and of the same as [in, T] in the backward of a pass that trains.
  virtual Quantized rows(Stream&, const Quantized& x, const scaling::Pass&) const { return x; }
  virtual Quantized cols(Stream&, const Quantized& x) const { return x; }
  /// dx [T, in] += the gradient of x. product(d, accumulate) stores or adds that of this input.
  virtual void backward(Stream&, const Tensor& dx, const std::function<void(const Tensor& d, bool accumulate)>& product) const {
    product(dx, true);
  }
};

/// x with values that are dropped in training passes: ops::Dropout. The adapters of one layer, such as those of queries and keys, read one
/// input. Evaluation reads x itself.
class DroppedInput final : public AdapterInput {
 public:
  /// The part of an input that a member has: columns from the first one on, and rows of one of so many members.
  struct Part {
    std::int64_t first_column = 0;
    int member = 0, members = 1;
  };
  /// Of the layer `path`, in [0, 1). The draws outlive this.
  DroppedInput(const std::string& path, double probability, const Part&, const DropoutDraws&);

  Quantized rows(Stream&, const Quantized& x, const scaling::Pass&) const override;
  Quantized cols(Stream&, const Quantized& x) const override;
  void backward(Stream&, const Tensor& dx, const std::function<void(const Tensor& d, bool accumulate)>& product) const override;

 private:
  Quantized dropped(Stream&, const Quantized& x, bool tokens_last) const;
  void drop(Stream&, const Tensor& x, const Tensor& y, bool tokens_last, bool accumulate) const;

  std::uint64_t key_;
  double probability_;
  Part part_;
  const DropoutDraws& draws_;
};

}  // namespace octet::nn
