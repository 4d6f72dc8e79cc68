#pragma once

// Only for *.sm90a.cu files: Hopper's asynchronous copies, the barriers that count their bytes, and shared memory of a cluster.
// Names in comments are PTX's. Source: PTX ISA 8.x, "mbarrier", "cp.async.bulk.tensor", "Asynchronous warpgroup".

#include <array>
#include <cstdint>

#include "octet/tensor/cuda/driver.cuh"

namespace octet::cuda {

/// A place in this block's shared memory, as instructions name it.
__device__ inline std::uint32_t shared_address(const void* p) { return std::uint32_t(__cvta_generic_to_shared(p)); }

__device__ inline float load_shared(std::uint32_t at) {
  float x;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(at));
  return x;
}
/// The compiler does not join this store with its neighbour's, for which it would keep both values in a pair of registers.
__device__ inline void store_shared(std::uint32_t at, float x) {
  asm volatile("st.volatile.shared.f32 [%0], %1;" ::"r"(at), "f"(x) : "memory");
}

/// mbarrier: a phase ends when `arrivals` arrivals and all announced bytes are there.
struct Barrier {
  std::uint32_t at;

  __device__ void init(unsigned arrivals) const {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(arrivals) : "memory");
  }
  /// One arrival, and `bytes` more to come in this phase.
  __device__ void expect(unsigned bytes) const {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
  }
  /// One arrival.
  __device__ void arrive() const { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory"); }
  /// The barrier in this place of block `rank` of the cluster, of which only arrive_remotely() is to be used.
  __device__ Barrier of_block(unsigned rank) const {
    std::uint32_t remote;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(at), "r"(rank));
    return {remote};
  }
  __device__ Barrier after(int barriers) const { return {at + unsigned(barriers) * 8}; }
  /// One arrival at a barrier of of_block(). It only signals that this thread has finished reading. Its writes need not be visible there,
  /// which would take a fence of the whole GPU.
  __device__ void arrive_remotely() const { asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(at) : "memory"); }
  /// Whether the phase of this parity has ended, as wait() counts them.
  __device__ bool ended(unsigned parity) const {
    unsigned yes;
    asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(yes)
                 : "r"(at), "r"(parity)
                 : "memory");
    return yes != 0;
  }
  /// Waits until the phase of this parity has ended; the phase before the first counts as one of parity 1.
  __device__ void wait(unsigned parity) const {
    asm volatile(
        "{.reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; "
        "@done bra.uni out; bra.uni again; out: }" ::"r"(at),
        "r"(parity)
        : "memory");
  }
};
/// Makes init() visible to the other blocks of the cluster and to copies; a cluster_sync() must follow.
__device__ inline void fence_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ inline unsigned cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
/// All threads of all blocks of the cluster meet.
__device__ inline void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/// Copies the box of a matrix that begins at column x, row y to shared memory; its bytes count at `full`. Outside of the matrix: zeros.
__device__ inline void copy_box(std::uint32_t to, const CUtensorMap& from, int x, int y, Barrier full) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
      "l"(&from), "r"(x), "r"(y), "r"(full.at)
      : "memory");
}
/// The same for a box of three dimensions that begins at {x, y, z}; and into that place of both blocks of a cluster of two, counted in each
/// at the barrier in the place of `full`.
__device__ inline void copy_box(std::uint32_t to, const CUtensorMap& from, int x, int y, int z, Barrier full) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
      "l"(&from), "r"(x), "r"(y), "r"(z), "r"(full.at)
      : "memory");
}
__device__ inline void copy_box_to_both(std::uint32_t to, const CUtensorMap& from, int x, int y, int z, Barrier full) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
      "l"(&from), "r"(x), "r"(y), "r"(z), "r"(full.at), "h"(std::uint16_t(3))
      : "memory");
}

/// The other way: a box of shared memory is stored in, or added to, a matrix; what lies outside of the matrix is dropped. Each element is
/// added once, in the matrix's type. Writes to shared memory before it need fence_stores(). This thread's stores since the last
/// commit_stores() are one group.
__device__ inline void store_box(std::uint32_t from, const CUtensorMap& to, int x, int y, int z) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&to), "r"(x), "r"(y), "r"(z),
               "r"(from)
               : "memory");
}
__device__ inline void add_box(std::uint32_t from, const CUtensorMap& to, int x, int y, int z) {
  asm volatile("cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&to), "r"(x), "r"(y),
               "r"(z), "r"(from)
               : "memory");
}
__device__ inline void fence_stores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ inline void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/// Waits until at most `left` of this thread's groups of stores still read shared memory.
template <int left>
__device__ inline void wait_stores() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(left) : "memory");
}

/// Registers a thread may use from here on; all warps of a warpgroup execute it, in a kernel with __launch_bounds__(threads, 1).
template <int count>
__device__ inline void fewer_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count>
__device__ inline void more_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

/// A row-major matrix whose boxes of box_rows x box_columns are copied; `swizzled`: boxes of 128 bytes per row, as wgmma reads them.
/// The address and the bytes of a row (row_elements of them) must be multiples of 16. Throws DeviceError on others.
inline CUtensorMap tensor_map(const void* data, CUtensorMapDataType type, std::size_t element_bytes, std::int64_t rows,
                              std::int64_t columns, std::int64_t row_elements, unsigned box_rows, unsigned box_columns, bool swizzled) {
  static auto* const encode = driver_function<decltype(cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  const cuuint64_t sizes[] = {cuuint64_t(columns), cuuint64_t(rows)}, strides[] = {cuuint64_t(row_elements) * element_bytes};
  const cuuint32_t box[] = {box_columns, box_rows}, steps[] = {1, 1};
  CUtensorMap map;
  require(encode(&map, type, 2, const_cast<void*>(data), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                 swizzled ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                 CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
          "cuTensorMapEncodeTiled");
  return map;
}

/// A row-major tensor of three dimensions, the innermost first, all of its boxes' rows 128 bytes: as tensor_map() otherwise.
struct TensorMap3 {
  CUtensorMapDataType type;
  std::size_t element_bytes;
  std::array<std::int64_t, 3> sizes;
  std::array<std::int64_t, 2> strides;  // elements from one row, and from one matrix, to the next
  std::array<unsigned, 2> box;          // rows, matrices

  CUtensorMap over(const void* data) const {
    static auto* const encode = driver_function<decltype(cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
    const cuuint64_t extents[] = {cuuint64_t(sizes[0]), cuuint64_t(sizes[1]), cuuint64_t(sizes[2])};
    const cuuint64_t steps[] = {cuuint64_t(strides[0]) * element_bytes, cuuint64_t(strides[1]) * element_bytes};
    const cuuint32_t boxes[] = {cuuint32_t(128 / element_bytes), box[0], box[1]}, ones[] = {1, 1, 1};
    CUtensorMap map;
    require(encode(&map, type, 3, const_cast<void*>(data), extents, steps, boxes, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
                   CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
            "cuTensorMapEncodeTiled");
    return map;
  }
};

/// How many of `clusters` clusters of `blocks` blocks of a kernel this GPU runs at once.
template <class Kernel>
int clusters_at_once(Kernel* kernel, int clusters, int blocks, int threads, int shared_bytes) {
  allow_shared(kernel, shared_bytes);
  cudaLaunchAttribute cluster{.id = cudaLaunchAttributeClusterDimension};
  cluster.val.clusterDim = {unsigned(blocks), 1, 1};
  const cudaLaunchConfig_t config{.gridDim = dim3(unsigned(clusters * blocks)),
                                  .blockDim = dim3(unsigned(threads)),
                                  .dynamicSmemBytes = std::size_t(shared_bytes),
                                  .attrs = &cluster,
                                  .numAttrs = 1};
  int most = 0;
  require(cudaOccupancyMaxActiveClusters(&most, kernel, &config), "cudaOccupancyMaxActiveClusters");
  check(most > 0, "no cluster of {} blocks fits on this GPU", blocks);
  return most < clusters ? most : clusters;
}

}  // namespace octet::cuda
