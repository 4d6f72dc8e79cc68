#include "octet/tensor/cuda/memory.hpp"

#include <algorithm>

#include "octet/tensor/cuda/device.hpp"
#include "octet/tensor/cuda/driver.cuh"
#include "octet/tensor/shape.hpp"

namespace octet::cuda {
namespace {

// Memory comes in parts of at least this much: few system calls, little waste.
constexpr std::size_t least_part = std::size_t(32) << 20;

struct Driver {
  decltype(&cuMemAddressReserve) reserve = driver_function<decltype(cuMemAddressReserve)>("cuMemAddressReserve");
  decltype(&cuMemAddressFree) free = driver_function<decltype(cuMemAddressFree)>("cuMemAddressFree");
  decltype(&cuMemCreate) create = driver_function<decltype(cuMemCreate)>("cuMemCreate");
  decltype(&cuMemRelease) release = driver_function<decltype(cuMemRelease)>("cuMemRelease");
  decltype(&cuMemMap) map = driver_function<decltype(cuMemMap)>("cuMemMap");
  decltype(&cuMemUnmap) unmap = driver_function<decltype(cuMemUnmap)>("cuMemUnmap");
  decltype(&cuMemSetAccess) access = driver_function<decltype(cuMemSetAccess)>("cuMemSetAccess");
};
const Driver& driver() {
  static const Driver it;
  return it;
}

int current_device() {
  int device;
  require(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

CUmemAllocationProp properties() {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location = {CU_MEM_LOCATION_TYPE_DEVICE, current_device()};
  return p;
}

}  // namespace

Pages Pages::reserve() {
  Pages pages;
  const std::size_t bytes = std::size_t(round_up(std::int64_t(facts().memory_bytes), std::int64_t(least_part)));
  require(cudaFree(nullptr), "start of CUDA");  // makes the context that the driver's functions need
  CUdeviceptr at = 0;
  require(driver().reserve(&at, bytes, least_part, 0, 0), "cuMemAddressReserve");
  pages.data_ = reinterpret_cast<std::byte*>(at), pages.bytes_ = bytes;
  return pages;
}

void Pages::take(std::size_t bytes) {
  if (bytes <= taken_) return;
  const std::size_t more = std::size_t(round_up(std::int64_t(bytes - taken_), std::int64_t(least_part)));
  const CUmemAllocationProp p = properties();
  CUmemGenericAllocationHandle handle;
  const CUresult created = driver().create(&handle, more, &p, 0);
  if (created == CUDA_ERROR_OUT_OF_MEMORY)
    throw DeviceError(format("out of GPU memory: {} more are needed and {} are free; use a smaller batch, a shorter sequence, or recompute",
                             bytes_text(double(more)), bytes_text(double(free_bytes()))));
  require(created, "cuMemCreate");
  parts_.push_back({handle, taken_, more});
  const CUdeviceptr at = reinterpret_cast<CUdeviceptr>(data_) + taken_;
  require(driver().map(at, more, 0, handle, 0), "cuMemMap");
  CUmemAccessDesc access{};
  access.location = p.location, access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  require(driver().access(at, more, &access, 1), "cuMemSetAccess");
  taken_ += more;
}

HostPages HostPages::reserve() {
  HostPages out;
  out.pages_ = cpu::Pages::reserve();
  return out;
}

void HostPages::take(std::size_t bytes) {
  if (bytes <= taken_) return;
  give_back();
  // One registered range, also after growth: CUDA does not copy or clear across two.
  const std::size_t all = std::min(std::size_t(round_up(std::int64_t(bytes), std::int64_t(least_part))), pages_.bytes());
  if (cudaHostRegister(pages_.data(), all, cudaHostRegisterMapped) != cudaSuccess) {
    cudaGetLastError();
    throw DeviceError(
        format("out of host memory that a GPU can use: {} are needed and {} are free; set optim.offload = false, or raise "
               "the limit of locked memory (ulimit -l)",
               bytes_text(double(all)), bytes_text(double(cpu::available_bytes()))));
  }
  taken_ = all;
}

void HostPages::give_back() {
  if (taken_ == 0) return;
  cudaDeviceSynchronize();
  cudaHostUnregister(pages_.data());
  taken_ = 0;
}

HostPages::~HostPages() { give_back(); }

Pages::~Pages() {
  if (data_ == nullptr) return;
  cudaDeviceSynchronize();
  const CUdeviceptr at = reinterpret_cast<CUdeviceptr>(data_);
  for (const Mapping& part : parts_) driver().unmap(at + part.begin, part.bytes), driver().release(part.handle);
  driver().free(at, bytes_);
}

}  // namespace octet::cuda
