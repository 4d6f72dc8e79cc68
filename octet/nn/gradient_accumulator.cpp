#include "octet/nn/gradient_accumulator.hpp"

namespace octet::nn {

GradientAccumulator::GradientAccumulator(Stream& stream, Parameter& p, DType type, bool used) : parameter_(p), used_(used) {
  if (!used || !trains(p) || !p.gradient.coded()) return;
  codes_ = p.gradient.stored();
  p.gradient.bind(Stored::plain(stream.zeros(p.shape, type, Lifetime::scratch, Category::workspace)), p.gradient.draws());
}

void GradientAccumulator::end(Stream& stream, int pass) {
  if (!used_) return;
  if (codes_) {
    const Tensor sum = parameter_.gradient.stored().values();
    parameter_.gradient.bind(codes_, parameter_.gradient.draws());
    add_codes(stream, parameter_, sum);
  }
  sum_done(stream, parameter_, pass);
}

}  // namespace octet::nn
