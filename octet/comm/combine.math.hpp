#pragma once

#include "octet/numerics/rounding.hpp"

namespace octet::comm {

/// Values in the type in which they are added, and back.
OCTET_HD float wide(float x) { return x; }
OCTET_HD float wide(Bf16 x) { return to_float(x); }
OCTET_HD double wide(double x) { return x; }
OCTET_HD std::uint32_t wide(std::int32_t x) { return std::uint32_t(x); }
OCTET_HD std::uint64_t wide(std::int64_t x) { return std::uint64_t(x); }

template <class T, class Sum>
OCTET_HD T narrow(Sum s) {
  if constexpr (std::is_same_v<T, Bf16>) return to_bf16(s);
  else return T(s);
}

}  // namespace octet::comm
