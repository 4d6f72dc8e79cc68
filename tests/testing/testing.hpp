#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "octet/numerics/philox.hpp"

// Shared by tests: reproducible data and computed tolerances. Header only, below every level but base and numerics.

namespace octet::testing {

/// Standard normal values, the same for one seed everywhere. Box-Muller on Philox words.
inline std::vector<float> gaussian(std::size_t n, std::uint64_t seed, double scale = 1.0) {
  std::vector<float> out(n);
  for (std::size_t i = 0; i < n; i += 2) {
    const RandomWords r = philox(seed, i);
    const double radius = std::sqrt(-2.0 * std::log(double(uniform(r.w[0])))), angle = 6.283185307179586 * double(uniform(r.w[1]));
    out[i] = float(scale * radius * std::cos(angle));
    if (i + 1 < n) out[i + 1] = float(scale * radius * std::sin(angle));
  }
  return out;
}

/// Uniform in (low, high).
inline std::vector<float> uniform_values(std::size_t n, std::uint64_t seed, double low, double high) {
  std::vector<float> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = float(low + (high - low) * double(uniform(philox(seed, i).w[0])));
  return out;
}

/// Bound on |computed - exact| of a sum of n products in precision `unit` (half a unit in the last place: 2^-24 for FP32, 2^-8 for
/// BF16): gamma_n * sum |a||b| with gamma_n = n u / (1 - n u). Source: Higham 2002, eq. 3.4.
inline double dot_bound(double n, double unit, double sum_of_magnitudes) { return n * unit / (1 - n * unit) * sum_of_magnitudes; }

inline constexpr double unit_f32 = 0x1p-24, unit_bf16 = 0x1p-8, unit_f16 = 0x1p-11, unit_e4m3 = 0x1p-4, unit_e5m2 = 0x1p-3;

/// Signal to quantization noise in dB: 20 log10(|reference| / |reference - x|).
template <class A, class B>
double sqnr_db(const A& reference, const B& x) {
  double signal = 0, noise = 0;
  for (std::size_t i = 0; i < std::size_t(reference.size()); ++i) {
    const double r = reference[i], e = r - double(x[i]);
    signal += r * r, noise += e * e;
  }
  return noise == 0 ? INFINITY : 10 * std::log10(signal / noise);
}

}  // namespace octet::testing
