#pragma once

#include <string_view>

// The CPU kernels are compiled once for AVX2 and once for AVX-512 (cmake/isa.cmake); this header calls one of the two.

namespace octet::cpu {

/// Instruction sets that kernels exist for: x86-64-v3 (AVX2, FMA, F16C) and -v4 (AVX-512 F, BW, DQ, VL, CD).
enum class Isa { none, v3, v4 };

/// The best one of this machine; the environment variable OCTET_ISA=v3 selects AVX2. Throws DeviceError without AVX2.
Isa isa();
/// The same without throwing, for `octet doctor`.
Isa detected_isa();
std::string_view name(Isa);
/// Matrix tiles for BF16, which oneDNN uses by itself.
bool has_amx_bf16();
/// Instructions that multiply BF16: AVX512-BF16 or AMX.
bool has_bf16();

}  // namespace octet::cpu

/// Calls a kernel that exists for every instruction set: OCTET_RUN(f, args).
#define OCTET_RUN(kernel, ...) \
  (::octet::cpu::isa() == ::octet::cpu::Isa::v4 ? ::octet::cpu::v4::kernel(__VA_ARGS__) : ::octet::cpu::v3::kernel(__VA_ARGS__))
