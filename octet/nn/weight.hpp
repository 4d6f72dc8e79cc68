#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "octet/ops/quantize/batch.hpp"
#include "octet/scaling/recipe.hpp"
#include "octet/tensor/parameter.hpp"

namespace octet::nn {

/// A parameter w [out, in] as the GEMMs of a layer read it. The only owner of its quantization: once per change of the parameter it makes
/// the operands, or, where codes are made for each GEMM, the scale and the measurements of the quantizer.
class Weight {
 public:
  /// The orientations: `rows` [out, in] of y = x w^T, `cols` [in, out] of dx = dy w.
  enum class Side : std::uint8_t { rows, cols };
  /// The operand of forward, `rows`: as quantized, or BF16 values of a weight whose `cols` are codes.
  enum class Forward : std::uint8_t { quantized, values };

  /// `cached`: operands are kept from step to step. The parameter outlives this.
  Weight(Parameter& parameter, std::unique_ptr<scaling::Quantizer> quantizer, bool cached, Forward forward = Forward::quantized)
      : parameter_(parameter), quantizer_(std::move(quantizer)), cached_(cached), forward_(forward) {}

  /// Quantizes the parameter if it changed since: once per optimizer step, with a pass that records. Where the parameter is codes already
  /// (Parameter::codes), makes the cached operands from them. Throws ContractError if these codes are of an older version.
  void refresh(Stream& stream, const scaling::Pass& pass) {
    ops::QuantizeBatch alone(stream);
    refresh(alone, pass);
    alone.run();
  }
  /// The same with other weights, whose operands are there after run().
  void refresh(ops::QuantizeBatch&, const scaling::Pass&);
  /// Whether refresh() would read the parameter's values.
  bool refresh_reads_values(const scaling::Pass&) const;
  /// Whether rows are values although columns are codes, so that ranks need the values of a weight.
  bool forward_reads_values() const { return forward_ == Forward::values && quantizer_->spec(scaling::recomputing).quantizes(); }
  /// One operand: cached, or made in scratch. After refresh().
  Quantized operand(Stream&, Side) const;

  /// Of a weight that does not train (PrecisionConfig::frozen_weights): makes its operands of these values [out, in], f32 or bf16, which
  /// are not kept. The operands are all that is in memory: those of both orientations, or, where they are made for each GEMM and have equal
  /// codes, these codes (Parameter::codes). Of a part of a matrix whose scale follows from all of it, `largest`, f32 [1], is the whole
  /// one's largest magnitude; otherwise empty.
  void hold(Stream&, const Tensor& values, const Tensor& largest = {});
  /// Memory for these operands in a region, before the first hold(), which otherwise takes the run's. `values`: memory of the shape and
  /// type of the values.
  void make_held(Stream&, const Tensor& values, Region);
  /// Whether hold() wants it.
  bool holds_by_largest() const;

  /// How a pass quantizes it.
  ops::QuantizeSpec spec(const scaling::Pass&) const;
  /// The scale, f32 [1] each, is found by find(stream), since the parameter is a part of a matrix: refresh() calls it first. Before the
  /// weight is first quantized.
  void share_scale(const Tensor& scale, const Tensor& descale, std::function<void(Stream&)> find) {
    scale_ = scale, descale_ = descale, find_scale_ = std::move(find);
  }

  Parameter& parameter() const { return parameter_; }

 private:
  void refresh_cached(ops::QuantizeBatch&, const ops::QuantizeSpec&);
  void refresh_sink(ops::QuantizeBatch&, const ops::QuantizeSpec&, ops::SinkRequest orientations, std::optional<ops::Sink>&) const;
  ops::SinkRequest request_of(const ops::QuantizeSpec&, const ops::SinkRequest& orientations) const;
  void refresh_from_codes(Stream&);
  void measure(Stream&, const scaling::Pass&);
  ops::Sink sink_from_codes(Stream&, const ops::SinkRequest&) const;

  Parameter& parameter_;
  std::unique_ptr<scaling::Quantizer> quantizer_;
  bool cached_;
  Forward forward_;
  std::optional<ops::Sink> operands_;  // cached, in the run's region
  std::optional<ops::Sink> values_;    // the same of forward, where it reads values
  std::optional<ops::Sink> held_;      // codes of a weight that does not train, which each GEMM's operands are made of
  Tensor scale_, descale_;  // f32, per matrix: found once per change, here or by others; empty: by the quantizer, or with the codes
  std::function<void(Stream&)> find_scale_;  // by others
  std::uint64_t refreshed_ = 0;              // the parameter's version
};

}  // namespace octet::nn
