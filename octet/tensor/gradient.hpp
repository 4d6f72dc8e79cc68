#pragma once

#include <cstdint>

#include "octet/tensor/tensor.hpp"

namespace octet {

/// How one part of backward adds to a gradient in a micro-batch.
enum class GradientUse : std::uint8_t {
  product,   // one GEMM, which can store its result instead of adding it
  products,  // one GEMM per chunk of tokens; the first can store
  sum,       // an op that only adds: column sums of biases and norms, the scatter of an embedding
};

/// The gradient of one parameter: where backward adds to it, and whether the backward of a micro-batch is complete.
///
///   constructor   gradient.add_use(GradientUse::product);
///   backward      const auto [data, accumulate] = gradient.target(GradientUse::product);  ...  gradient.done();
///
/// A parameter may have several uses: a tied head multiplies by the table that the embedding reads. Calls happen on the host, so a
/// replayed graph makes none; the counts repeat per micro-batch and stay right.
class Gradient {
 public:
  struct Target {
    Tensor data;      // f32 or bf16 [shape of the parameter]
    bool accumulate;  // add to data; otherwise store
  };
  /// The contents of the storage when a step begins.
  enum class Contents : std::uint8_t { zero, stale };

  /// Declares one use per micro-batch. Called by modules as they are made.
  void add_use(GradientUse);
  /// BF16 storage is allowed: backward adds once per micro-batch. Sums of many parts stay in FP32.
  bool may_be_narrow() const { return !sums_parts_; }
  /// Backward reaches the gradient by a GEMM first, so a step may begin with stale contents.
  bool begins_with_product() const { return product_; }

  void bind(const Tensor& data) { data_ = data; }
  /// Empty in a model made for evaluation only.
  const Tensor& data() const { return data_; }

  /// Before the first micro-batch of a step. Throws ContractError for stale contents unless begins_with_product().
  void begin(Contents);
  /// Where a use adds, or stores once where contents are stale. Throws ContractError when a sum would add to stale contents.
  Target target(GradientUse);
  /// One use of this micro-batch is complete; after the last one the next micro-batch begins.
  void done();
  /// Every use of the micro-batches so far is complete, and the contents are this step's.
  bool complete() const { return pending_ == uses_ && contents_ == Contents::zero; }

 private:
  Tensor data_;
  int uses_ = 0, pending_ = 0;  // per micro-batch
  bool product_ = false, sums_parts_ = false;
  Contents contents_ = Contents::zero;
};

}  // namespace octet
