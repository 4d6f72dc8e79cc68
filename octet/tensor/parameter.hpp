#pragma once

#include <cstdint>
#include <string>

#include "octet/tensor/cut.hpp"
#include "octet/tensor/gradient.hpp"
#include "octet/tensor/storage.hpp"
#include "octet/tensor/stream.hpp"

namespace octet {

/// How a parameter starts.
struct Init {
  enum class Kind : std::uint8_t { zeros, ones, normal } kind = Kind::normal;
  double standard_deviation = 0.02;
};

/// The role of a parameter decides weight decay and the type of its value.
enum class ParameterRole : std::uint8_t {
  matrix,    // decays; stored as configured
  position,  // a table of learned positions: decays; f32
  router,    // the matrix of a router of experts: decays; f32, and so is its gradient
  vector,    // norms and biases: no decay; f32
};

/// The cut of a tensor with so many values here: none where its one owner has all of them.
Cut unless_whole(Cut, std::int64_t here);

/// A trained tensor. Modules declare it (path, shape, start, role) and the uses of its gradient; storage is bound later, so that
/// gradients share flat buffers and a dry run needs none. `value` is the master copy that the optimizer updates, unless masters are divided
/// and modules read copies of them: then it is such a copy, or empty where the copy is 8-bit codes.
struct Parameter {
  explicit Parameter(std::string path, Shape shape, Init init = {}, ParameterRole role = ParameterRole::matrix, Cut cut = {})
      : path(std::move(path)), shape(shape), init(init), role(role), cut(unless_whole(std::move(cut), shape.count())) {}
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  const std::string path;  // in the model, such as "layers.3.attn.qkv.weight"
  const Shape shape;
  const Init init;
  const ParameterRole role;
  const Cut cut;                    // of a part: its place in the whole parameter of that path; otherwise empty
  std::int64_t matrices = 1;        // equal groups of its rows that are matrices of their own, such as gate and up
  Stored value;                     // [shape]
  Gradient gradient;                // its storage: f32, bf16, e4m3 or e4m3_tensor [shape]
  std::uint64_t version = 1;        // counts changes of the master: a quantized copy of an older version is stale
  Quantized codes;                  // [shape]: the copy as the row operand of a GEMM, instead of `value`; otherwise empty
  std::uint64_t codes_version = 0;  // the version that they were encoded from

  const Shape& whole() const { return cut ? cut.whole : shape; }
  bool decays() const { return role != ParameterRole::vector; }
  Storage value_storage(Storage matrices) const { return role == ParameterRole::matrix ? matrices : Storage::f32; }
  /// `products`: of matrices whose gradients are one GEMM each per micro-batch; others are f32. `ends`: so are those of one use to which
  /// many parts are added, as of an untied embedding and head, if that is e4m3.
  Storage gradient_storage(Storage products, bool ends = false) const {
    if (gradient.may_be_narrow()) return role != ParameterRole::router ? products : Storage::f32;
    const bool follows = ends && products == Storage::e4m3 && role == ParameterRole::matrix && gradient.uses() == 1;
    return follows ? products : Storage::f32;
  }
};

/// Values of a tensor of f32 or bf16 from and to the host's floats; nearest even.
void set_values(Stream&, const Tensor&, const float* host);
void get_values(Stream&, const Tensor&, float* host);

}  // namespace octet
