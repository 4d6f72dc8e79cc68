#include "octet/tensor/cpu/isa.hpp"

#include <cpuid.h>

#include <cstdlib>

#include "octet/base/error.hpp"

namespace octet::cpu {

namespace {

// Not every compiler has a name for it.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

}  // namespace

Isa detected_isa() {
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c() && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
  return v4 ? Isa::v4 : v3 ? Isa::v3 : Isa::none;
}

std::string_view name(Isa i) { return i == Isa::v4 ? "x86-64-v4 (AVX-512)" : i == Isa::v3 ? "x86-64-v3 (AVX2)" : "none"; }

bool has_amx_bf16() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & (1u << 22)) != 0;
}

bool has_bf16() { return __builtin_cpu_supports("avx512bf16") || has_amx_bf16(); }

Isa isa() {
  static const Isa best = [] {
    const Isa found = detected_isa();
    if (found == Isa::none)
      throw DeviceError("this processor lacks AVX2 and FMA, which Octet's CPU kernels need; any x86-64 processor since 2013 has them");
    const char* wanted = std::getenv("OCTET_ISA");
    return wanted != nullptr && std::string_view(wanted) == "v3" ? Isa::v3 : found;
  }();
  return best;
}

}  // namespace octet::cpu
