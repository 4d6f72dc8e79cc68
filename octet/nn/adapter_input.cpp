#include "octet/nn/adapter_input.hpp"

#include "octet/numerics/philox.hpp"
#include "octet/ops/dropout/dropout.hpp"

namespace octet::nn {

DroppedInput::DroppedInput(const std::string& path, double probability, const Part& part, const DropoutDraws& draws)
    : key_(hash_of((path + ".dropout").c_str())), probability_(probability), part_(part), draws_(draws) {}

void DroppedInput::drop(Stream& stream, const Tensor& x, const Tensor& y, bool tokens_last, bool accumulate) const {
  ops::dropout(stream, {.x = x,
                        .y = y,
                        .tokens_last = tokens_last,
                        .accumulate = accumulate,
                        .probability = probability_,
                        .key = key_,
                        .numbers = draws_.numbers(),
                        .sequence = draws_.sequence(),
                        .part = draws_.part(),
                        .first_column = part_.first_column,
                        .member = part_.member,
                        .members = part_.members});
}

// In the order in which x is stored.
Quantized DroppedInput::dropped(Stream& stream, const Quantized& x, bool tokens_last) const {
  const Quantized out{.codes = stream.empty(x.codes.shape, x.codes.dtype), .transposed = x.transposed};
  drop(stream, x.codes, out.codes, tokens_last, false);
  return out;
}

Quantized DroppedInput::rows(Stream& stream, const Quantized& x, const scaling::Pass& pass) const {
  return pass.kind == scaling::Pass::Kind::evaluate ? x : dropped(stream, x, x.transposed);
}

Quantized DroppedInput::cols(Stream& stream, const Quantized& x) const { return dropped(stream, x, !x.transposed); }

void DroppedInput::backward(Stream& stream, const Tensor& dx, const std::function<void(const Tensor& d, bool accumulate)>& product) const {
  const Scope scope(stream);
  const Tensor d = stream.empty(dx.shape, dx.dtype);
  product(d, false);
  drop(stream, d, dx, false, true);
}

}  // namespace octet::nn
