#include <cmath>
#include <mutex>

#include "octet/bench/all_reduce.hpp"
#include "octet/comm/threads/threads.hpp"
#include "octet/ops/normal/normal.hpp"
#include "octet/parallel/eight_bit_sum.hpp"
#include "octet/parallel/shared_scale_sum.hpp"

namespace octet::bench {
namespace {

using comm::Communicator, comm::Reduction;

constexpr std::int64_t count = 131072;
constexpr double sigma = 2;
constexpr int steps_of_mu = 12;  // enough to halve mu from 1 to below 1 / ranks
constexpr std::uint64_t common_key = 1u << 20;

// Log-normal magnitudes that all ranks have alike, times normal values of each rank, or of all ranks alike.
void fill(Stream& stream, int rank, bool coherent, const Tensor& x) {
  const Scope scope(stream);
  const Tensor size = stream.empty({count}, DType::f32);
  ops::fill_normal(stream, common_key, sigma, size);
  ops::fill_normal(stream, coherent ? common_key + 1 : std::uint64_t(rank), 1, x);
  for (std::int64_t i = 0; i < count; ++i) x.f32()[i] *= std::exp(size.f32()[i]);
}

// FP8-LM's sum. mu finds its value in a few steps.
void sum_shared(Stream& stream, Communicator& comm, const Tensor& x, SumQuality& q) {
  const Scope scope(stream);
  parallel::SharedScaleSum sum(stream, comm.size(), {count}, parallel::room_of(q.way));
  const Tensor trial = stream.empty({count}, DType::f32);
  for (int i = 1; i < steps_of_mu && q.way == Wire::e4m3_shared; ++i) {
    copy(stream, x, trial);
    sum.all_reduce(stream, comm, std::span(&trial, 1));
  }
  q.mu = sum.mu().f32()[0];
  sum.all_reduce(stream, comm, std::span(&x, 1));
  q.overflow = double(sum.overflow().as<std::int64_t>()[0]) / double(count);
  q.underflow = double(sum.underflow().as<std::int64_t>()[1]) / double(count) / comm.size();
}

// x becomes the sum.
void sum_by(Stream& stream, Communicator& comm, const Tensor& x, SumQuality& q) {
  if (q.way == Wire::f32) return comm.all_reduce(stream, x, Reduction::sum);
  if (q.way == Wire::e4m3) return parallel::EightBitSum(comm).all_reduce(stream, x);
  if (q.way != Wire::bf16) return sum_shared(stream, comm, x, q);
  const Scope scope(stream);
  const Tensor half = stream.empty({count}, DType::bf16);
  for (std::int64_t i = 0; i < count; ++i) half.bf16()[i] = to_bf16(x.f32()[i]);
  comm.all_reduce(stream, half, Reduction::sum);
  for (std::int64_t i = 0; i < count; ++i) x.f32()[i] = to_float(half.bf16()[i]);
}

double decibel_of(const Tensor& exact, const Tensor& x) {
  double error = 0, energy = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double wanted = exact.as<double>()[i];
    error += (x.f32()[i] - wanted) * (x.f32()[i] - wanted), energy += wanted * wanted;
  }
  return 10 * std::log10(energy / error);
}

// Of this rank's values in blocks of 128 with a scale each: those other than 0 that are sent as 0.
double flushed_share(const Tensor& x) {
  std::int64_t flushed = 0;
  for (std::int64_t begin = 0; begin < count; begin += 128) {
    float amax = 0;
    for (std::int64_t i = begin; i < begin + 128; ++i) amax = std::max(amax, std::fabs(x.f32()[i]));
    int exponent = 0;
    if (std::frexp(amax / E4M3::max, &exponent) == 0.5f) --exponent;  // the least power of two that is not below the quotient
    for (std::int64_t i = begin; i < begin + 128; ++i)
      flushed += x.f32()[i] != 0 && decode<E4M3>(encode<E4M3>(std::ldexp(x.f32()[i], -exponent))) == 0;
  }
  return double(flushed) / double(count);
}

std::vector<SumQuality> measured(Communicator& comm, bool coherent) {
  std::vector<SumQuality> out;
  Stream stream(Device::cpu);
  const Tensor own = stream.empty({count}, DType::f32, Lifetime::run), x = stream.empty({count}, DType::f32, Lifetime::run);
  const Tensor exact = stream.empty({count}, DType::f64, Lifetime::run);
  fill(stream, comm.rank(), coherent, own);
  for (std::int64_t i = 0; i < count; ++i) exact.as<double>()[i] = own.f32()[i];
  comm.all_reduce(stream, exact, Reduction::sum);
  for (const Wire way : {Wire::f32, Wire::bf16, Wire::e4m3, Wire::e4m3_shared, Wire::e4m3_prescaled, Wire::e4m3_postscaled}) {
    SumQuality q{.way = way, .coherent = coherent, .ranks = comm.size()};
    copy(stream, own, x);
    if (way == Wire::e4m3) q.underflow = flushed_share(x);
    sum_by(stream, comm, x, q);
    q.decibel = decibel_of(exact, x);
    out.push_back(q);
  }
  return out;
}

}  // namespace

std::vector<SumQuality> measure_sum_quality(const std::vector<int>& ranks, double limit_seconds) {
  std::vector<SumQuality> out;
  for (const bool coherent : {false, true})
    for (const int n : ranks) {
      std::vector<std::vector<SumQuality>> each{std::size_t(n)};
      const auto measure = [&](Communicator& comm) { each[std::size_t(comm.rank())] = measured(comm, coherent); };
      comm::run_on_threads({.ranks = n, .limit_seconds = limit_seconds}, measure);
      out.insert(out.end(), each[0].begin(), each[0].end());
    }
  return out;
}

}  // namespace octet::bench
