#include "octet/ops/sum_of_squares/sum_of_squares.hpp"

#include <algorithm>
#include <vector>

#include "octet/ops/sum_of_squares/sum_of_squares.kernels.hpp"
#include "octet/ops/stored/stored.hpp"

namespace octet::ops {
namespace {

std::int64_t count_pieces(std::span<const Stored> x) {
  std::int64_t n = 0;
  for (const Stored& s : x) n += ceil_div(s.count(), sum_piece_values);
  return n;
}

std::vector<SumPiece> pieces_of(std::span<const Stored> x) {
  std::vector<SumPiece> pieces;
  for (const Stored& s : x)
    for (std::int64_t at = 0; at < s.count(); at += sum_piece_values)
      pieces.push_back({view_of(s), at, std::min(sum_piece_values, s.count() - at)});
  return pieces;
}

double check_sum(const SumOfSquares& a) {
  const std::int64_t n = std::int64_t(a.x.size());
  check(a.sums.shape == Shape{n} && a.sums.dtype == DType::f64, "sum_of_squares: sums must be f64 [{}], got {} {}", n, a.sums.dtype,
        a.sums.shape);
  check(!a.total || (a.total.shape == Shape{1} && a.total.dtype == DType::f64), "sum_of_squares: total must be f64 [1], got {} {}",
        a.total.dtype, a.total.shape);
  check(!a.maxima || (a.maxima.shape == Shape{n} && a.maxima.dtype == DType::f32), "sum_of_squares: maxima must be f32 [{}], got {} {}", n,
        a.maxima.dtype, a.maxima.shape);
  double bytes = 0;
  for (const Stored& s : a.x) {
    check_stored("sum_of_squares", s);
    bytes += double(s.bytes());
  }
  return bytes;
}

// From the sums and maxima of pieces to those of variables.
void finish(const SumOfSquares& a, const SumPartial& partial) {
  const double* next = partial.sums.as<double>();
  const float* next_most = partial.maxima.f32();
  double total = 0;
  for (std::size_t i = 0; i < a.x.size(); ++i) {
    double sum = 0;
    float most = a.maxima && a.accumulate ? a.maxima.f32()[i] : 0;
    for (std::int64_t p = ceil_div(a.x[i].count(), sum_piece_values); p > 0; --p) sum += *next++, most = larger(*next_most++, most);
    a.sums.as<double>()[i] = sum + (a.accumulate ? a.sums.as<double>()[i] : 0);
    if (a.maxima) a.maxima.f32()[i] = most;
    total += sum;
  }
  if (a.total) *a.total.as<double>() = total + (a.accumulate ? *a.total.as<double>() : 0);
}

}  // namespace

void sum_of_squares(Stream& stream, const SumOfSquares& a) {
  stream.count({.ops = 1, .bytes = check_sum(a)});
  const Scope scope(stream);
  const std::int64_t pieces = count_pieces(a.x);
  const SumPartial partial{.sums = stream.empty({pieces + std::int64_t(a.x.size())}, DType::f64, Lifetime::scratch, Category::workspace),
                           .maxima = stream.empty({pieces}, DType::f32, Lifetime::scratch, Category::workspace)};
  if (stream.device() == Device::cuda) OCTET_RUN_CUDA(sum_of_squares, stream.queue(), a, partial);
  if (stream.device() != Device::cpu) return;
  OCTET_RUN(sum_of_squares, pieces_of(a.x).data(), pieces, partial.sums.as<double>(), partial.maxima.f32());
  finish(a, partial);
}

void sum_of_squares(Stream& stream, const Tensor& x, const Tensor& sum, bool accumulate) {
  const Stored plain = Stored::plain(x);
  sum_of_squares(stream, {.x = std::span(&plain, 1), .sums = sum, .accumulate = accumulate});
}

}  // namespace octet::ops
