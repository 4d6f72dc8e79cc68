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

void fill(const Parameter& p, std::uint64_t seed, float* out, std::int64_t n) {
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
    normal_pair(key, i, p.init.standard_deviation, pair);
    out[2 * i] = pair[0];
    if (2 * i + 1 < n) out[2 * i + 1] = pair[1];
  }
}

}  // namespace

void set_values(Stream& stream, const Tensor& t, const float* host) {
  if (t.dtype == DType::f32) return upload(stream, host, t);
  check(t.dtype == DType::bf16, "set_values: wants f32 or bf16, got {}", t.dtype);
  std::vector<Bf16> rounded(std::size_t(t.count()));
  for (std::size_t i = 0; i < rounded.size(); ++i) rounded[i] = to_bf16(host[i]);
  upload(stream, rounded.data(), t);
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
  if (stream.device() == Device::cpu && p.value.dtype == DType::f32) return fill(p, seed, p.value.f32(), n);
  std::vector<float> made(std::size_t(n), 0.0f);
  fill(p, seed, made.data(), n);
  set_values(stream, p.value, made.data());
}

}  // namespace octet
