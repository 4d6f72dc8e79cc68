#pragma once

#include <cstdint>
#include <string>

#include "octet/tensor/stream.hpp"

namespace octet {

/// How a parameter starts.
struct Init {
  enum class Kind : std::uint8_t { zeros, ones, normal } kind = Kind::normal;
  double standard_deviation = 0.02;
};

/// A trained tensor. Modules declare it (path, shape, start); storage is bound later, so that gradients share flat buffers and a
/// dry run needs none. `value` is the master copy that the optimizer updates; backward adds to `grad`, or stores it where it is void.
struct Parameter {
  Parameter(std::string path, Shape shape, Init init = {}, bool decay = true)
      : path(std::move(path)), shape(shape), init(init), decay(decay), narrow_value(decay), narrow_gradient(decay) {}
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  const std::string path;  // in the model, such as "layers.3.attn.qkv.weight"
  const Shape shape;
  const Init init;
  const bool decay;                    // weight decay applies: matrices yes, norms and biases no
  bool narrow_value, narrow_gradient;  // storage may be bf16 where the configuration says so: matrices, but what is added to in many parts
  Tensor value;                        // f32 or bf16 [shape]
  Tensor grad;                         // f32 or bf16 [shape]; empty when the model was made for evaluation only
  bool gradient_from_gemm = false;     // backward reaches `grad` by a linear layer's GEMM first, which can store instead of add
  bool gradient_void = false;          // what stands in `grad` is of an earlier step
  std::uint64_t version = 1;           // counts changes of `value`: tells whether a quantized copy is stale
};

/// Values of a tensor of f32 or bf16 from and to the host's floats; nearest even.
void set_values(Stream&, const Tensor&, const float* host);
void get_values(Stream&, const Tensor&, float* host);

}  // namespace octet
