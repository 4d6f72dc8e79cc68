#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "octet/numerics/value.hpp"

// Proofs over the floats: a dense sample on every run, all 2^32 of them when the environment says OCTET_EXHAUSTIVE=1.

namespace octet::testing {

inline bool exhaustive() {
  const char* wanted = std::getenv("OCTET_EXHAUSTIVE");
  return wanted != nullptr && std::string_view(wanted) == "1";
}

/// The input with the largest error; error 0 when there was none.
struct Worst {
  double error = 0;
  float at = 0;
};

namespace detail {
template <class Error>
void measure(Worst& worst, Error& error, std::uint32_t bits) {
  const float x = float_of(bits);
  const double e = error(x);
  if (!(e <= worst.error)) worst = {std::isnan(e) ? double(INFINITY) : e, x};
}
}  // namespace detail

/// The largest error(x) over every BF16 value, three neighbours on each side of every entry of `marks` (both signs), and every
/// `stride`-th bit pattern, or every `full_stride`-th when exhaustive(). `error` is called from several threads.
template <class Error>
Worst worst_over_floats(Error error, const std::vector<float>& marks = {}, std::uint32_t stride = 4099, std::uint32_t full_stride = 1) {
  Worst worst;
  for (std::uint32_t high = 0; high < 0x10000u; ++high) detail::measure(worst, error, high << 16);
  for (const float mark : marks)
    for (const std::uint32_t sign : {0u, 0x80000000u})
      for (std::uint32_t d = 0; d < 7; ++d) detail::measure(worst, error, (bits_of(mark) ^ sign) + d - 3);
  const std::uint64_t step = exhaustive() ? full_stride : stride, n = std::max(1u, std::thread::hardware_concurrency());
  std::vector<Worst> parts(n);
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < n; ++t)
      threads.emplace_back([&, t] {
        Worst part;
        for (std::uint64_t bits = t * step; bits <= 0xFFFFFFFFu; bits += n * step) detail::measure(part, error, std::uint32_t(bits));
        parts[t] = part;
      });
  }
  for (const Worst& part : parts)
    if (part.error > worst.error) worst = part;
  return worst;
}

/// |got - exact| in units in the last place of a float near `exact` (2^-149 among subnormals). Past the largest float, where only
/// infinity is right, it is 0 or infinite; two NaN agree.
inline double ulp_error(float got, long double exact) {
  if (std::isnan(got) || std::isnan(exact)) return std::isnan(got) && std::isnan(exact) ? 0 : INFINITY;
  const float nearest = float(exact);
  if (std::isinf(nearest)) return got == nearest ? 0 : INFINITY;
  int exponent = 0;
  (void)std::frexp(exact, &exponent);
  const long double last_place = std::ldexp(1.0L, std::max(exponent, -125) - 24);
  return double(std::fabs((long double)got - exact) / last_place);
}

}  // namespace octet::testing
