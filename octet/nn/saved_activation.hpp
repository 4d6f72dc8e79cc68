#pragma once

#include "octet/ops/quantize/saved.hpp"
#include "octet/scaling/precision.hpp"

namespace octet::nn {

/// An activation [T, width] that a module saves for backward: its values, or 8-bit codes, as the plan says.
class SavedActivation {
 public:
  /// `recomputed`: only backward makes it, in a pass that records nothing.
  SavedActivation(const std::string& path, std::int64_t width, scaling::Precision& precision, bool recomputed)
      : codes_(precision.plan_saved(path, width, !recomputed)) {}

  bool coded() const { return codes_ != nullptr; }
  /// Where forward puts the values: with the pass's saved activations if `saves` and backward reads them, otherwise in scratch.
  Region region(const scaling::Pass& pass, bool saves) const { return saves && !coded() ? pass.keep : Region(Lifetime::scratch); }
  /// The place of codes of x, which an op that reads x may fill in passing.
  ops::Sink sink(Stream& stream, const Tensor& x, const scaling::Pass& pass) const {
    return ops::saved_sink(stream, x, codes_->spec(pass), pass.keep);
  }
  /// The same by an op that reads x: f(codes) with their place; with null unless forward `saves` codes.
  template <class F>
  ops::Saved saved_in_passing(Stream& stream, const Tensor& x, const scaling::Pass& pass, bool saves, const F& f) const {
    if (!saves || !coded()) return f(nullptr), x;
    ops::Sink codes = sink(stream, x, pass);
    f(&codes);
    return {codes.codes.rows, x.dtype};
  }
  /// x for backward. x itself, which lives in region(), unless there are codes.
  ops::Saved save(Stream&, const Tensor& x, const scaling::Pass&) const;

 private:
  std::unique_ptr<scaling::Quantizer> codes_;
};

}  // namespace octet::nn
