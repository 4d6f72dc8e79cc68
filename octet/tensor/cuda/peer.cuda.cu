#include "octet/tensor/cuda/peer.hpp"

#include <cstring>

#include "octet/tensor/cuda/driver.cuh"

namespace octet::cuda {
namespace {

struct Driver {
  decltype(&cuStreamWaitValue32) await = driver_function<decltype(cuStreamWaitValue32)>("cuStreamWaitValue32");
  decltype(&cuStreamWriteValue32) write = driver_function<decltype(cuStreamWriteValue32)>("cuStreamWriteValue32");
};
const Driver& driver() {
  static const Driver it;
  return it;
}

CUdeviceptr address(const std::byte* flag) { return reinterpret_cast<CUdeviceptr>(flag); }

}  // namespace

SharedMemory::SharedMemory(std::size_t bytes) { require(cudaMalloc(&data_, bytes), "memory that other processes can map"); }
SharedMemory::~SharedMemory() { cudaFree(data_); }

SharedMemory::Handle SharedMemory::handle() const {
  cudaIpcMemHandle_t handle;
  require(cudaIpcGetMemHandle(&handle, data_), "cudaIpcGetMemHandle");
  Handle out{};
  static_assert(sizeof handle == sizeof out);
  std::memcpy(out.data(), &handle, sizeof handle);
  return out;
}

PeerMemory::PeerMemory(const SharedMemory::Handle& bytes) {
  cudaIpcMemHandle_t handle;
  std::memcpy(&handle, bytes.data(), sizeof handle);
  void* at = nullptr;
  const cudaError_t opened = cudaIpcOpenMemHandle(&at, handle, cudaIpcMemLazyEnablePeerAccess);
  if (opened != cudaSuccess) cudaGetLastError();
  require(opened, "access to the memory of another process's GPU");
  data_ = static_cast<std::byte*>(at);
}
PeerMemory::~PeerMemory() {
  if (data_ != nullptr) cudaIpcCloseMemHandle(data_);
}

PinnedMemory::PinnedMemory(void* at, std::size_t bytes) : at_(at) {
  const cudaError_t registered = cudaHostRegister(at, bytes, cudaHostRegisterMapped);
  if (registered != cudaSuccess) cudaGetLastError();
  require(registered, "cudaHostRegister");
  void* device = nullptr;
  require(cudaHostGetDevicePointer(&device, at, 0), "cudaHostGetDevicePointer");
  device_ = static_cast<std::byte*>(device);
}
PinnedMemory::~PinnedMemory() { cudaHostUnregister(at_); }

void await_flag(Queue queue, const std::byte* flag, std::uint32_t value) {
  require(driver().await(queue, address(flag), value, CU_STREAM_WAIT_VALUE_EQ), "cuStreamWaitValue32");
}

void set_flag(Queue queue, std::byte* flag, std::uint32_t value) {
  require(driver().write(queue, address(flag), value, CU_STREAM_WRITE_VALUE_DEFAULT), "cuStreamWriteValue32");
}

bool is_recording(Queue queue) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  require(cudaStreamIsCapturing(queue, &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

}  // namespace octet::cuda
