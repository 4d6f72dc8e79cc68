#pragma once

// Only for *.cuda.cu files: rows in the registers of a group of threads, so that a row body reads them twice and memory once.

#include "octet/tensor/cuda/lanes.cuh"

namespace octet::cuda {

/// One thread's part of a row of T in memory: packs of 16 bytes, `threads` * N values apart (see HeldLanes).
template <class T, int packs>
struct HeldRow {
  uint4 pack[packs];
};
/// The same of float, for sums.
template <int N, int packs>
struct HeldSums {
  Pack<N> pack[packs];
};

/// Lanes for rows of up to threads * packs * N values.
template <int threads, int packs, int N>
struct HeldLanes : RowLanes<threads, N> {
  using Value = Pack<N>;
  struct Cursor {
    int pack, at;
  };

  template <class F>
  __device__ __forceinline__ void each(std::int64_t n, F&& f) const {
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const int at = (p * threads + this->lane()) * N;
      if (at < n) f(Cursor{p, at});
    }
  }

  __device__ __forceinline__ Value within(const Value& v, Cursor, float = 0) const { return v; }

  template <class T>
  __device__ __forceinline__ Value load(const T* p, Cursor c) const {
    return cuda::load<N>(p, c.at);
  }
  template <class T>
  __device__ __forceinline__ Value load(const HeldRow<T, packs>* row, Cursor c) const {
    return cuda::unpacked<T>(row->pack[c.pack]);
  }
  __device__ __forceinline__ Value load(const HeldSums<N, packs>* sums, Cursor c) const { return sums->pack[c.pack]; }
  template <class T>
  __device__ __forceinline__ void store(HeldRow<T, packs>* row, Cursor c, const Value& v) const {
    row->pack[c.pack] = cuda::packed<T>(v);
  }
  __device__ __forceinline__ void store(HeldSums<N, packs>* sums, Cursor c, const Value& v) const { sums->pack[c.pack] = v; }

  /// A whole row from memory and to it.
  template <class T>
  __device__ __forceinline__ void fetch(const T* from, std::int64_t n, HeldRow<T, packs>& row) const {
    each(n, [&](Cursor c) { row.pack[c.pack] = *reinterpret_cast<const uint4*>(from + c.at); });
  }
  __device__ __forceinline__ void fetch(const float* from, std::int64_t n, HeldSums<N, packs>& row) const {
    each(n, [&](Cursor c) { row.pack[c.pack] = cuda::load<N>(from, c.at); });
  }
  template <class T>
  __device__ __forceinline__ void put(const HeldRow<T, packs>& row, std::int64_t n, T* to) const {
    each(n, [&](Cursor c) { *reinterpret_cast<uint4*>(to + c.at) = row.pack[c.pack]; });
  }
};

/// Threads per block for rows that occupy `threads` threads each.
template <int threads>
inline constexpr int block_of = threads == 32 ? 128 : threads;

/// Calls f.operator()<threads, packs>() with the fewest that hold rows of `cols` values of T. False, and no call, when rows are too long or
/// not a multiple of a pack.
template <class T, class F>
bool with_held_rows(std::int64_t cols, const F& f) {
  constexpr int N = 16 / int(sizeof(T)), values = 32;  // of a row in a thread
  if (cols % N != 0 || cols > 256 * values) return false;
  if (cols <= 32 * values) f.template operator()<32, values / N>();
  else if (cols <= 64 * values) f.template operator()<128, values / 2 / N>();
  else if (cols <= 128 * values) f.template operator()<128, values / N>();
  else f.template operator()<256, values / N>();
  return true;
}

}  // namespace octet::cuda
