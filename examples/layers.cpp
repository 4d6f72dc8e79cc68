// The layers alone, without the trainer: a small network of one's own from Linear, LayerNorm and an FP8 recipe.
//
//   y = gelu(layernorm(x) W1^T + b1) W2^T,   trained to reproduce y* = x rotated by 90 degrees in pairs of columns.

#include <cmath>
#include <cstdio>

#include "octet/nn/norm.hpp"
#include "octet/nn/operands.hpp"
#include "octet/nn/parameters.hpp"
#include "octet/numerics/philox.hpp"
#include "octet/ops/gelu/gelu.hpp"
#include "octet/optim/optimizer.hpp"

using namespace octet;

namespace {

constexpr std::int64_t rows = 128, width = 64, hidden = 128;

/// Two linears and a norm. A network is any type with visit(): the one list of its parameters.
struct Network {
  nn::LayerNorm norm;
  nn::Linear up, down;

  explicit Network(scaling::Precision& precision)
      : norm("norm", width, 1e-5),
        up("up", {.in = width, .out = hidden, .bias = true, .init = {Init::Kind::normal, 0.1}}, precision),
        down("down", {.in = hidden, .out = width, .init = {Init::Kind::normal, 0.1}}, precision) {}

  void visit(nn::Visitor& visitor) { norm.visit(visitor), up.visit(visitor), down.visit(visitor); }

  struct Saved {
    nn::LayerNorm::Input norm;
    nn::Linear::Saved up, down;
    Tensor h;
  };

  void forward(Stream& stream, const Tensor& x, const Tensor& y, const scaling::Pass& pass, Saved& saved) {
    saved.norm = nn::LayerNorm::input(stream, x, pass.keep);
    saved.h = stream.empty({rows, hidden}, DType::bf16, pass.keep);
    ops::Sink n = up.operand(stream, {.tokens = rows}, pass);  // the norm writes what `up` reads: FP8 codes, if the recipe says so
    norm.forward(stream, saved.norm, n);
    up.forward(stream, n.codes, saved.h, pass, &saved.up);
    ops::Sink g = down.operand(stream, {.tokens = rows}, pass);
    ops::gelu_forward(stream, saved.h, g);
    down.forward(stream, g.codes, y, pass, &saved.down);
  }

  void backward(Stream& stream, const Tensor& dy, const Tensor& dx, const scaling::Pass& pass, const Saved& saved) {
    const Tensor dg = stream.empty({rows, hidden}, DType::bf16), dn = stream.empty({rows, width}, DType::bf16);
    down.backward(stream, nn::quantized(stream, down, {.tensor = nn::Operand::gradient, .values = dy}, pass), saved.down, dg);
    ops::Sink dh = up.operand(stream, {.tensor = nn::Operand::gradient, .tokens = rows}, pass);
    ops::gelu_backward(stream, dg, saved.h, dh);
    up.backward(stream, dh, saved.up, dn);
    norm.backward(stream, dn, saved.norm, dx, false);
  }
};

/// The mean squared error of y against the target, and its gradient in dy.
double error_of(const Tensor& x, const Tensor& y, const Tensor& dy) {
  double sum = 0;
  for (std::int64_t i = 0; i < rows * width; i += 2)
    for (int j = 0; j < 2; ++j) {
      const float target = j == 0 ? -to_float(x.bf16()[i + 1]) : to_float(x.bf16()[i]);
      const float e = to_float(y.bf16()[i + j]) - target;
      sum += double(e) * e;
      dy.bf16()[i + j] = to_bf16(2 * e / float(rows * width));
    }
  return sum / double(rows * width);
}

double train(const char* recipe) {
  Stream stream(Device::cpu);
  scaling::Precision precision({.recipe = recipe});
  Network network(precision);
  nn::Parameters parameters(stream, network, true);
  parameters.initialize(stream, 1);
  precision.allocate(stream);
  optim::Optimizer optimizer(stream, {.weight_decay = 0}, parameters.slices());
  const Tensor loss = stream.zeros({1}, DType::f32, Lifetime::run), none = stream.zeros({1}, DType::i64, Lifetime::run);
  const scaling::Pass pass{.kind = scaling::Pass::Kind::train};
  double error = 0;
  for (std::uint64_t step = 0; step < 100; ++step) {
    const Scope micro_batch(stream, pass.keep), scratch(stream);
    const Tensor x = stream.empty({rows, width}, DType::bf16), y = stream.empty({rows, width}, DType::bf16);
    const Tensor dy = stream.empty({rows, width}, DType::bf16), dx = stream.empty({rows, width}, DType::bf16);
    for (std::int64_t i = 0; i < rows * width; ++i) x.bf16()[i] = to_bf16(2 * uniform(philox(step, std::uint64_t(i)).w[0]) - 1);
    Network::Saved saved;
    network.forward(stream, x, y, pass, saved);
    error = error_of(x, y, dy);
    *loss.f32() = float(error);
    network.backward(stream, dy, dx, pass, saved);
    optimizer.step(stream, 1e-2 * (1 - double(step) / 100), loss, none);
    precision.end_step(stream, optimizer.skip());
    parameters.clear_gradients(stream);
  }
  std::printf("%-10s mean squared error %.5f\n", recipe, error);
  return error;
}

}  // namespace

int main() {
  // The targets have a mean square of 1/3. Every recipe must have learnt most of it.
  bool learnt = true;
  for (const auto& entry : scaling::recipes())
    if (entry.name != "global" && entry.name != "fp32" && entry.name != "fp16")  // this network's activations are BF16
      learnt &= train(std::string(entry.name).c_str()) < 0.2;
  return learnt ? 0 : 1;
}
