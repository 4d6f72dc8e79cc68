#include "octet/nn/saved_activation.hpp"

#include "octet/ops/quantize/quantize.hpp"

namespace octet::nn {

ops::Saved SavedActivation::save(Stream& stream, const Tensor& x, const scaling::Pass& pass) const {
  if (!coded()) return x;
  ops::Sink codes = sink(stream, x, pass);
  ops::quantize(stream, x, codes);
  return {codes.codes.rows, x.dtype};
}

}  // namespace octet::nn
