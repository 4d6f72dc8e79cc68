#include "octet/ops/sum_of_squares/sum_of_squares.hpp"

#include <algorithm>
#include <vector>

#include "octet/ops/sum_of_squares/sum_of_squares.kernels.hpp"

namespace octet::ops {
namespace {

std::int64_t count_pieces(std::span<const Tensor> x) {
  std::int64_t n = 0;
  for (const Tensor& t : x) n += ceil_div(t.count(), sum_piece_values);
  return n;
}

std::vector<SumPiece> pieces_of(std::span<const Tensor> x) {
  std::vector<SumPiece> pieces;
  for (const Tensor& t : x)
    for (std::int64_t at = 0; at < t.count(); at += sum_piece_values)
      pieces.push_back({t.reshaped({t.count()}).rows(at, std::min(sum_piece_values, t.count() - at))});
  return pieces;
}

}  // namespace

void sum_of_squares(Stream& stream, const SumOfSquares& a) {
  const std::int64_t n = std::int64_t(a.x.size());
  check(a.sums.shape == Shape{n} && a.sums.dtype == DType::f64, "sum_of_squares: sums must be f64 [{}], got {} {}", n, a.sums.dtype,
        a.sums.shape);
  check(!a.total || (a.total.shape == Shape{1} && a.total.dtype == DType::f64), "sum_of_squares: total must be f64 [1], got {} {}",
        a.total.dtype, a.total.shape);
  double bytes = 0;
  for (const Tensor& t : a.x) {
    check(t.dtype == DType::f32 || t.dtype == DType::bf16, "sum_of_squares: wants f32 or bf16, got {} {}", t.dtype, t.shape);
    bytes += double(t.bytes());
  }
  stream.count({.ops = 1, .bytes = bytes});
  const Scope scope(stream);
  const Tensor partial = stream.empty({count_pieces(a.x) + n}, DType::f64, Lifetime::scratch, Category::workspace);
  if (stream.device() == Device::cuda) OCTET_RUN_CUDA(sum_of_squares, stream.queue(), a, partial);
  if (stream.device() != Device::cpu) return;
  const auto pieces = pieces_of(a.x);
  OCTET_RUN(sum_of_squares, pieces.data(), std::int64_t(pieces.size()), partial.as<double>());
  const double* next = partial.as<double>();
  double total = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (std::int64_t p = ceil_div(a.x[std::size_t(i)].count(), sum_piece_values); p > 0; --p) sum += *next++;
    a.sums.as<double>()[i] = sum + (a.accumulate ? a.sums.as<double>()[i] : 0);
    total += sum;
  }
  if (a.total) *a.total.as<double>() = total + (a.accumulate ? *a.total.as<double>() : 0);
}

void sum_of_squares(Stream& stream, const Tensor& x, const Tensor& sum, bool accumulate) {
  sum_of_squares(stream, {.x = std::span(&x, 1), .sums = sum, .accumulate = accumulate});
}

}  // namespace octet::ops
