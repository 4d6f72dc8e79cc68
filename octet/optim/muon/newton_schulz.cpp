#include "octet/optim/muon/newton_schulz.hpp"

#include <algorithm>

#include "octet/ops/gemm/gemm.hpp"
#include "octet/ops/sum_of_squares/sum_of_squares.hpp"
#include "octet/ops/weighted_sum/weighted_sum.hpp"

namespace octet::optim {
namespace {

struct Coefficients {
  float a, b, c;
};
constexpr Coefficients fast{3.4445f, -4.7750f, 2.0315f}, exact{2.0f, -1.5f, 0.5f};
constexpr int fast_steps = 8, exact_steps = 2;

// Ranks with copies of a matrix compute the same bits.
void multiply(Stream& stream, const Quantized& a, const Quantized& b, const Tensor& d) {
  ops::gemm(stream, {.a = a, .b = b, .d = d, .untimed = true});
}

}  // namespace

void newton_schulz(Stream& stream, const Tensor& x, const Tensor& out, DType compute) {
  check(x.shape.rank == 2 && x.dtype == DType::f32 && out.dtype == DType::f32 && out.shape == x.shape,
        "newton_schulz: x and out must be f32 of one shape [n, m], got {} {} and {} {}", x.dtype, x.shape, out.dtype, out.shape);
  const Scope scope(stream);
  const bool tall = x.shape[0] > x.shape[1];
  const std::int64_t least = std::min(x.shape[0], x.shape[1]);
  const auto workspace = [&](Shape s, DType d) { return stream.empty(s, d, Lifetime::scratch, Category::workspace); };
  const Tensor squares = workspace({1}, DType::f64);
  const Tensor X = workspace(x.shape, compute), product = workspace(x.shape, compute);
  const Shape square{least, least};
  const Tensor A = workspace(square, compute), AA = workspace(square, compute), B = workspace(square, compute);
  ops::sum_of_squares(stream, x, squares);
  ops::weighted_sum(stream, {.x = x, .out = X, .squares = squares});
  for (int step = 0; step < fast_steps + exact_steps; ++step) {
    const Coefficients& k = step < fast_steps ? fast : exact;
    const Quantized rows{.codes = X}, columns{.codes = X, .transposed = true}, a{.codes = A}, b{.codes = B};
    multiply(stream, tall ? columns : rows, tall ? columns : rows, A);  // X X^T, or X^T X
    multiply(stream, a, a, AA);                                         // A is symmetric
    ops::weighted_sum(stream, {.a = k.b, .x = A, .b = k.c, .y = AA, .out = B});
    if (tall) multiply(stream, rows, b, product);  // B, too
    else multiply(stream, b, columns, product);
    ops::weighted_sum(stream, {.a = k.a, .x = X, .b = 1, .y = product, .out = X});
  }
  ops::weighted_sum(stream, {.x = X, .out = out});
}

}  // namespace octet::optim
