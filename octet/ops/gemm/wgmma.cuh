#pragma once

// Only for *.sm90a.cu files: Hopper's warpgroup-wide multiplication of 8-bit floats, 64 x 128 x 32 at a time.

#include "octet/numerics/formats.hpp"
#include "octet/tensor/cuda/hopper.cuh"

namespace octet::cuda {

/// How a matrix lies in shared memory, for wgmma: rows of 128 bytes, in groups of 8 rows whose 16-byte pieces are swizzled; the address a
/// multiple of 1024. Source: PTX ISA, "Matrix Descriptor Format": address / 16; bytes between groups / 16 from bit 32 on; 1 at bit 62.
struct WgmmaMatrix {
  std::uint32_t low;  // of the 64 bits, the half that differs from matrix to matrix
  static __device__ WgmmaMatrix at(std::uint32_t address) { return {within(address) >> 4 | 1u << 16}; }
  /// A matrix of 16-bit values that lies transposed: a row of shared memory has 64 of its rows' values of one k, `bytes` to the next 64
  /// rows.
  static __device__ WgmmaMatrix turned(std::uint32_t address, unsigned bytes) { return {within(address) >> 4 | bytes / 16 << 16}; }
  // Addresses in a cluster have the number of the block in higher bits.
  static __device__ std::uint32_t within(std::uint32_t address) { return address & 0x3FFFF; }
  __device__ WgmmaMatrix after(unsigned bytes) const { return {low + bytes / 16}; }
  __device__ std::uint64_t descriptor() const { return std::uint64_t(1024 >> 4 | 1u << 30) << 32 | low; }
};

/// Sums of a warpgroup, as its threads hold them: sum 4 j + 2 h + i of a thread is that of row 16 warp + lane / 4 + 8 h and of column
/// 8 j + 2 (lane % 4) + i, where warp and lane count in the warpgroup.
using WgmmaSums = float[64];

template <class Format>
struct WgmmaName;
template <>
struct WgmmaName<E4M3> {
  static constexpr char it[] = "e4m3";
};
template <>
struct WgmmaName<E5M2> {
  static constexpr char it[] = "e5m2";
};

/// s[m, n] = (s[m, n] if `add`) + sum_k a[m, k] b[n, k]; a: 64 x 32, b: 128 x 32 in shared memory. Runs on: see wgmma_begin, wgmma_wait.
template <class A, class B>
__device__ inline void wgmma(WgmmaSums& s, WgmmaMatrix a, WgmmaMatrix b, bool add) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %66, 0; "
      "wgmma.mma_async.sync.aligned.m64n128k32.f32.%67.%68 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, p, 1, 1;}"
      : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]), "+f"(s[4]), "+f"(s[5]), "+f"(s[6]), "+f"(s[7]), "+f"(s[8]), "+f"(s[9]), "+f"(s[10]),
        "+f"(s[11]), "+f"(s[12]), "+f"(s[13]), "+f"(s[14]), "+f"(s[15]), "+f"(s[16]), "+f"(s[17]), "+f"(s[18]), "+f"(s[19]), "+f"(s[20]),
        "+f"(s[21]), "+f"(s[22]), "+f"(s[23]), "+f"(s[24]), "+f"(s[25]), "+f"(s[26]), "+f"(s[27]), "+f"(s[28]), "+f"(s[29]), "+f"(s[30]),
        "+f"(s[31]), "+f"(s[32]), "+f"(s[33]), "+f"(s[34]), "+f"(s[35]), "+f"(s[36]), "+f"(s[37]), "+f"(s[38]), "+f"(s[39]), "+f"(s[40]),
        "+f"(s[41]), "+f"(s[42]), "+f"(s[43]), "+f"(s[44]), "+f"(s[45]), "+f"(s[46]), "+f"(s[47]), "+f"(s[48]), "+f"(s[49]), "+f"(s[50]),
        "+f"(s[51]), "+f"(s[52]), "+f"(s[53]), "+f"(s[54]), "+f"(s[55]), "+f"(s[56]), "+f"(s[57]), "+f"(s[58]), "+f"(s[59]), "+f"(s[60]),
        "+f"(s[61]), "+f"(s[62]), "+f"(s[63])
      : "l"(a.descriptor()), "l"(b.descriptor()), "r"(int(add)), "C"(WgmmaName<A>::it), "C"(WgmmaName<B>::it));
}

/// The same for 16 values of BF16 of each row; an operand may lie transposed.
template <bool a_turned, bool b_turned>
__device__ inline void wgmma_bf16(WgmmaSums& s, WgmmaMatrix a, WgmmaMatrix b, bool add) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %66, 0; "
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, p, 1, 1, %67, %68;}"
      : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]), "+f"(s[4]), "+f"(s[5]), "+f"(s[6]), "+f"(s[7]), "+f"(s[8]), "+f"(s[9]), "+f"(s[10]),
        "+f"(s[11]), "+f"(s[12]), "+f"(s[13]), "+f"(s[14]), "+f"(s[15]), "+f"(s[16]), "+f"(s[17]), "+f"(s[18]), "+f"(s[19]), "+f"(s[20]),
        "+f"(s[21]), "+f"(s[22]), "+f"(s[23]), "+f"(s[24]), "+f"(s[25]), "+f"(s[26]), "+f"(s[27]), "+f"(s[28]), "+f"(s[29]), "+f"(s[30]),
        "+f"(s[31]), "+f"(s[32]), "+f"(s[33]), "+f"(s[34]), "+f"(s[35]), "+f"(s[36]), "+f"(s[37]), "+f"(s[38]), "+f"(s[39]), "+f"(s[40]),
        "+f"(s[41]), "+f"(s[42]), "+f"(s[43]), "+f"(s[44]), "+f"(s[45]), "+f"(s[46]), "+f"(s[47]), "+f"(s[48]), "+f"(s[49]), "+f"(s[50]),
        "+f"(s[51]), "+f"(s[52]), "+f"(s[53]), "+f"(s[54]), "+f"(s[55]), "+f"(s[56]), "+f"(s[57]), "+f"(s[58]), "+f"(s[59]), "+f"(s[60]),
        "+f"(s[61]), "+f"(s[62]), "+f"(s[63])
      : "l"(a.descriptor()), "l"(b.descriptor()), "r"(int(add)), "n"(int(a_turned)), "n"(int(b_turned)));
}

/// A fence between other uses of the registers of s and wgmma's.
__device__ inline void wgmma_hold(WgmmaSums& s) {
#pragma unroll
  for (float& x : s) asm volatile("" : "+f"(x)::"memory");
}
__device__ inline void wgmma_begin(WgmmaSums& s) {
  wgmma_hold(s);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
/// All multiplications since the last call are one group.
__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Waits until all groups are in s.
__device__ inline void wgmma_wait(WgmmaSums& s) {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  wgmma_hold(s);
}
/// Waits until all groups but the last are; s is not to be used.
__device__ inline void wgmma_wait_for_all_but_one() { asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory"); }

}  // namespace octet::cuda
