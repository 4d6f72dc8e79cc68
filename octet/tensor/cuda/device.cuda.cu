#include "octet/tensor/cuda/device.hpp"

#include "octet/tensor/cuda/bus.hpp"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

// Kernels are compiled for Hopper and later.
constexpr int least_major = 9;

std::string version_text(int v) { return format("{}.{}", v / 1000, v % 1000 / 10); }

std::string examine(Facts& f) {
  cudaRuntimeGetVersion(&f.runtime);
  if (cudaDriverGetVersion(&f.driver) != cudaSuccess || f.driver == 0) return "there is no NVIDIA driver on this machine";
  int devices = 0;
  if (const cudaError_t code = cudaGetDeviceCount(&devices); code != cudaSuccess)
    return format("the NVIDIA driver ({}) does not work with this program's CUDA {}: {}", version_text(f.driver), version_text(f.runtime),
                  cudaGetErrorString(code));
  if (devices == 0) return "the NVIDIA driver shows no GPU";
  cudaDeviceProp p;
  if (const cudaError_t code = cudaGetDeviceProperties(&p, 0); code != cudaSuccess)
    return format("the GPU does not answer: {}", cudaGetErrorString(code));
  f.name = p.name, f.major = p.major, f.minor = p.minor, f.multiprocessors = p.multiProcessorCount, f.memory_bytes = p.totalGlobalMem;
  if (p.major < least_major)
    return format("{} has compute capability {}.{}; 8-bit matrix instructions need 9.0 (Hopper) or later", f.name, p.major, p.minor);
  return "";
}

struct Examined {
  Facts facts;
  std::string why = examine(facts);
};
const Examined& examined() {
  static const Examined it;
  return it;
}

}  // namespace

bool built() { return true; }
const std::string& why_unavailable() { return examined().why; }

const Facts& facts() {
  if (!available()) throw DeviceError("no GPU can be used: " + why_unavailable());
  return examined().facts;
}

std::string bus_address() {
  facts();
  char address[32] = "";
  return cudaDeviceGetPCIBusId(address, int(sizeof address), 0) == cudaSuccess ? address : "";
}

std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  require(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

}  // namespace octet::cuda
