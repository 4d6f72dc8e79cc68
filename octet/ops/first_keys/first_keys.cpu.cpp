#include "octet/ops/first_keys/first_keys.kernels.hpp"
#include "octet/ops/first_keys/first_keys.math.hpp"

namespace octet::cpu::OCTET_ISA {

void first_keys(const ops::FirstKeys& a) {
  const auto* const starts = a.starts.as<std::int32_t>();
  for (std::int64_t t = 0; t < a.keys.count(); ++t) a.keys.as<std::int32_t>()[t] = ops::first_key(t, starts, a.window, a.sequence, a.part);
}

}  // namespace octet::cpu::OCTET_ISA
