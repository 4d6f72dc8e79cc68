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

void initialize(Stream& stream, Parameter& p, std::uint64_t seed) {
  ++p.version;
  if (stream.device() == Device::null) return;
  const std::int64_t n = p.value.count();
  std::vector<float> made(stream.device() == Device::cuda ? std::size_t(n) : 0);
  float* const out = made.empty() ? p.value.f32() : made.data();
  fill(p, seed, out, n);
  if (!made.empty()) upload(stream, out, p.value);
}

}  // namespace octet
