#pragma once

// Only for *.cuda.cu files: the limit of a launch.

#include <type_traits>

#include "octet/numerics/formats.hpp"

namespace octet::cuda {

/// Infinite where a call has none, with the bits of no limit.
struct AnyLimit {
  static constexpr bool is_any = true;
  float most;
  __device__ __forceinline__ float operator()() const { return most; }
};
struct NoLimit {
  static constexpr bool is_any = false;
  __device__ __forceinline__ float operator()() const { return 0; }
};

/// Whether rows without a token are left out. Otherwise no load waits for a branch: what such rows have in memory is computed with, and the
/// result is dropped. A limit takes the registers that this needs.
template <class Rows, class Limit>
inline constexpr bool branches_at_padding = Limit::is_any || !Rows::loads_early;

inline AnyLimit any_limit(float limit) { return {limit > 0 ? limit : __builtin_inff()}; }

/// f(limit). For BF16 values the usual case, none, has kernels of its own, without comparisons.
template <class T, class F>
void with_limit(float limit, const F& f) {
  if constexpr (std::is_same_v<T, Bf16>) {
    if (!(limit > 0)) return f(NoLimit{});
  }
  f(any_limit(limit));
}

}  // namespace octet::cuda
