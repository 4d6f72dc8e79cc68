#pragma once

#include <vector>

#include "octet/nn/visitor.hpp"

namespace octet::nn {

/// Storage of all parameters of a model: values in one flat buffer, gradients in another, each parameter on its own 256 bytes.
class Parameters {
 public:
  /// Binds value (and grad, when `gradients`) of every parameter that `model.visit` shows. Contents are undefined.
  template <class Model>
  Parameters(Stream& stream, Model& model, bool gradients) {
    Collect collect(list_);
    model.visit(collect);
    bind(stream, gradients);
  }

  const std::vector<Parameter*>& list() const { return list_; }
  Tensor values() const { return values_; }        // f32 [n], padding included
  Tensor gradients() const { return gradients_; }  // f32 [n] or empty
  std::int64_t count() const { return count_; }    // without padding

  /// Every parameter from its own Init.
  void initialize(Stream&, std::uint64_t seed);
  void clear_gradients(Stream& stream) { clear(stream, gradients_); }

 private:
  struct Collect final : Visitor {
    std::vector<Parameter*>& list;
    explicit Collect(std::vector<Parameter*>& list) : list(list) {}
    void parameter(Parameter& p) override { list.push_back(&p); }
  };
  void bind(Stream&, bool gradients);

  std::vector<Parameter*> list_;
  Tensor values_, gradients_;
  std::int64_t count_ = 0;
};

}  // namespace octet::nn
