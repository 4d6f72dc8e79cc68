#include "octet/tensor/parameter.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "octet/numerics/philox.hpp"

namespace octet {
namespace {

// Standard normal values 2i and 2i+1 of a key. Box-Muller in double, rounded once.
void normal_pair(std::uint64_t key, std::int64_t i, double scale, float out[2]) {
  const RandomWords r = philox(key, std::uint64_t(i));
  const double radius = std::sqrt(-2.0 * std::log(double(uniform(r.w[0])))), angle = 6.283185307179586 * double(uniform(r.w[1]));
  out[0] = float(scale * radius * std::cos(angle)), out[1] = float(scale * radius * std::sin(angle));
}

// Values on their way to a device go through the host's memory so many at a time, an even number.
constexpr std::int64_t values_at_once = std::int64_t(1) << 24;

// f(first, n) for all of `count` values.
template <class F>
void in_parts(std::int64_t count, const F& f) {
  for (std::int64_t first = 0; first < count; first += values_at_once) f(first, std::min(values_at_once, count - first));
}
Tensor part_of(const Tensor& t, std::int64_t first, std::int64_t n) { return t.reshaped({t.count()}).rows(first, n); }

// Values `first` to first + n of the parameter; `first` is even.
void fill(const Parameter& p, std::uint64_t seed, float* out, std::int64_t first, std::int64_t n) {
  if (p.init.kind != Init::Kind::normal) {
    std::fill(out, out + n, p.init.kind == Init::Kind::ones ? 1.0f : 0.0f);
    return;
  }
  const std::uint64_t key = seed ^ hash_of(p.path.c_str());
#ifdef _OPENMP
#pragma omp parallel for schedule(static)
#endif
  for (std::int64_t i = 0; i < (n + 1) / 2; ++i) {
    float pair[2];
    normal_pair(key, first / 2 + i, p.init.standard_deviation, pair);
    out[2 * i] = pair[0];
    if (2 * i + 1 < n) out[2 * i + 1] = pair[1];
  }
}

}  // namespace

void set_values(Stream& stream, const Tensor& t, const float* host) {
  if (t.dtype == DType::f32) return upload(stream, host, t);
  check(t.dtype == DType::bf16, "set_values: wants f32 or bf16, got {}", t.dtype);
  std::vector<Bf16> rounded(std::size_t(std::min(values_at_once, t.count())));
  in_parts(t.count(), [&](std::int64_t first, std::int64_t n) {
#ifdef _OPENMP
#pragma omp parallel for schedule(static)
#endif
    for (std::int64_t i = 0; i < n; ++i) rounded[std::size_t(i)] = to_bf16(host[first + i]);
    upload(stream, rounded.data(), part_of(t, first, n));
  });
}

void get_values(Stream& stream, const Tensor& t, float* host) {
  if (t.dtype == DType::f32) return download(stream, t, host);
  const HostCopy copy(stream, t);
  for (std::int64_t i = 0; i < t.count(); ++i) host[i] = value_at(copy.tensor(), i);
}

void initialize(Stream& stream, Parameter& p, std::uint64_t seed) {
  ++p.version;
  if (stream.device() == Device::null) return;
  const std::int64_t n = p.value.count();
  if (stream.device() == Device::cpu && p.value.dtype == DType::f32) return fill(p, seed, p.value.f32(), 0, n);
  std::vector<float> made(std::size_t(std::min(values_at_once, n)));
  in_parts(n, [&](std::int64_t first, std::int64_t count) {
    fill(p, seed, made.data(), first, count);
    set_values(stream, part_of(p.value, first, count), made.data());
  });
}

}  // namespace octet
