#include "octet/python/layer_run.hpp"

#include "octet/machine/machine.hpp"
#include "octet/nn/operands.hpp"
#include "octet/nn/parameters.hpp"

namespace octet::python {
namespace {

Tensor uploaded(Stream& stream, Shape shape, DType dtype, const std::vector<float>& values) {
  const Tensor t = stream.empty(shape, dtype, Lifetime::run);
  set_values(stream, t, values.data());
  return t;
}

std::vector<float> downloaded(Stream& stream, const Tensor& t) {
  std::vector<float> out(std::size_t(t.count()));
  get_values(stream, t, out.data());
  return out;
}

}  // namespace

LayerRun::Result LayerRun::run() const {
  Stream stream(Device::cpu, machine::machine_target(Device::cpu));
  scaling::PrecisionConfig precise{.recipe = config.recipe, .options = config.options};
  precise.fast_accumulation = config.fast_accumulation;
  scaling::Precision precision(precise);
  nn::Linear linear("linear", {.in = in, .out = out, .bias = !bias.empty()}, precision);
  nn::Parameters parameters(stream, linear, true, {.values = weights, .gradients = weights});
  parameters.set_values(stream, 0, w.data());
  if (!bias.empty()) parameters.set_values(stream, 1, bias.data());
  precision.allocate(stream);
  const DType type = precision.activations();
  const Tensor xs = uploaded(stream, {tokens, in}, type, x), dys = uploaded(stream, {tokens, out}, type, dy);
  const Tensor y = stream.empty({tokens, out}, type, Lifetime::run), dx = stream.empty({tokens, in}, type, Lifetime::run);
  const Tensor skip = stream.zeros({1}, DType::f32, Lifetime::run);
  const scaling::Pass pass{.kind = scaling::Pass::Kind::train};
  for (std::int64_t step = 0; step < steps; ++step) {
    const Scope scope(stream), kept(stream, pass.keep);
    parameters.clear_gradients(stream);
    parameters.mark_changed();
    nn::Linear::Saved saved;
    linear.forward(stream, nn::operands_of(quantized(stream, linear, {.values = xs}, pass)), y, pass, &saved);
    linear.backward(stream, quantized(stream, linear, {.tensor = scaling::Operand::gradient, .values = dys}, pass), saved, dx);
    precision.end_step(stream, skip);
  }
  const auto gradient = [&](std::size_t i) { return downloaded(stream, parameters.list()[i]->gradient.stored().codes); };
  return {downloaded(stream, y), downloaded(stream, dx), gradient(0), bias.empty() ? std::vector<float>{} : gradient(1)};
}

}  // namespace octet::python
