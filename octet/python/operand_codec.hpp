#pragma once

#include <array>
#include <span>

#include "octet/ops/quantize/sink.hpp"
#include "octet/python/executor.hpp"
#include "octet/scaling/recipe.hpp"

namespace octet::python {

/// A scaling recipe as a caller from Python gives it: name and options, as the section `recipe` of a configuration has them.
struct CodecConfig {
  std::string recipe = "current";
  scaling::RecipeOptions options;
  bool fast_accumulation = true;

  void fields(config::FieldVisitor&);
};

/// Throws ConfigError when the recipe does not exist or has no 8-bit format.
std::unique_ptr<scaling::Recipe> eight_bit_recipe(const CodecConfig&);

/// Facts of a recipe, without a device.
struct RecipeFacts {
  bool keeps_state;    // from step to step, so each operand has its own
  bool needs_maximum;  // OperandCodec::needs_maximum() of activations and gradients
};
/// Throws as eight_bit_recipe().
RecipeFacts facts_of(const CodecConfig&);

/// One operand of a linear layer in memory of the caller, with the quantizer that encodes it and that quantizer's state: x [T, in],
/// w [out, in] or dy [T, out] of nn::Linear, with its codes, bit for bit. `rows` is the orientation of y = x w^T and dx = dy w's dy; `cols`
/// that of dW = dy^T x, and of w in dx.
///
/// A recipe that looks back on maxima knows the scale before the values come. Its first tensor sets it, unless its option `calibration` is
/// 0. Later ones raise the maximum of the step, and end_step() makes the next scale.
class OperandCodec {
 public:
  /// Throws as eight_bit_recipe().
  OperandCodec(Executor&, std::uintptr_t queue, scaling::Operand, const CodecConfig&);
  OperandCodec(const OperandCodec&) = delete;
  OperandCodec& operator=(const OperandCodec&) = delete;

  /// The orientations to encode, of values of that shape and type, f32 or bf16.
  struct Request {
    Shape shape;
    DType values = DType::bf16;
    bool rows = true, cols = true;
  };
  /// Memory that the caller allocates for a request: that of the columns first.
  struct Buffer {
    Shape shape;
    DType dtype;
    bool of_columns;
  };
  /// Shapes and places of a request's codes. It is made once per request, and the codec outlives it.
  struct Layout {
    Request request;
    std::vector<Buffer> parts;
    QTensor operands;                                 // without memory; a known descale has its own
    std::array<int, 4> at = {-1, -1, -1, -1};         // the parts of codes and descales of the columns, then of the rows; -1: none
    QTensor in(std::span<void* const> memory) const;  // the operands in memory for the parts
  };
  Layout layout(const Request&) const;
  /// Encodes values into memory for the parts; with `records` it raises the maximum of the step. `maximum`: empty, or f32 [1], max |values|
  /// without NaN, where needs_maximum(): values are then read once. In the executor.
  QTensor encode(Stream&, const Tensor& values, const Layout&, std::span<void* const> memory, bool records, const Tensor& maximum);
  /// The same into scratch.
  QTensor encode(Stream&, const Tensor& values, const Request&, bool records, const Tensor& maximum);
  /// Whether one scale of the tensor follows from its maximum.
  bool needs_maximum() const;

  /// State that is kept from step to step, by name, in memory of the executor: {"amax_history", f32 [L, 1]}, {"scale", f32 [1, 64]}, ...
  /// Empty for recipes without any.
  const std::vector<std::pair<std::string, Tensor>>& state() const { return state_; }
  /// f32 [1]: the maximum of this step, which ranks join.
  Tensor maximum() const { return slots_.amax(); }
  /// Makes the next scale from the maxima.
  void end_step(Stream&);
  /// The scale was set from elsewhere: the next tensor does not set it.
  void settle() { settled_ = true; }
  /// The state is that of a new one.
  void reset(Stream&);

  const scaling::Recipe& recipe() const { return *recipe_; }
  bool fast_forward() const { return fast_; }

 private:
  ops::QuantizeSpec spec(bool records) const;
  ops::Sink sink(Stream&, const Request&, const ops::QuantizeSpec&, const Tensor& values) const;
  void calibrate(Stream&, const Tensor& values);
  void find_scale(Stream&, ops::QuantizeSpec&, const Tensor& values, const QTensor&, const Tensor& maximum) const;

  scaling::Operand operand_;
  Target target_;
  std::unique_ptr<scaling::Recipe> recipe_;
  bool fast_, settled_;
  scaling::SlotTable table_;
  scaling::SlotGroup slots_;
  std::unique_ptr<scaling::Quantizer> quantizer_;
  std::vector<std::pair<std::string, Tensor>> state_;
  std::vector<std::vector<std::byte>> first_;  // its content at first
};

}  // namespace octet::python
