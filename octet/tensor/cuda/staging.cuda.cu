#include "octet/tensor/cuda/staging.hpp"

#include <algorithm>
#include <cstring>

#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/waiter.hpp"

namespace octet::cuda {

Staging::~Staging() {
  for (Slot& s : slots_) {
    if (s.copied != nullptr) cudaEventSynchronize(s.copied), end_event(s.copied);
    cudaFreeHost(s.data);
  }
}

// The slot that was used longest ago, free to be used again.
Staging::Slot& Staging::next() {
  Slot& s = slots_[at_++ % slots_.size()];
  if (s.copied == nullptr) {
    require(cudaMallocHost(&s.data, slot_bytes), "pinned memory");
    s.copied = make_event();
  }
  wait(s.copied);
  return s;
}

void Staging::upload(Queue queue, const void* host, void* to, std::size_t bytes) {
  for (std::size_t begin = 0; begin < bytes; begin += slot_bytes) {
    const std::size_t n = std::min(slot_bytes, bytes - begin);
    Slot& s = next();
    std::memcpy(s.data, static_cast<const std::byte*>(host) + begin, n);
    require(cudaMemcpyAsync(static_cast<std::byte*>(to) + begin, s.data, n, cudaMemcpyDefault, queue), "copy to the GPU");
    record(queue, s.copied);
  }
}

void Staging::download(Queue queue, const void* from, void* host, std::size_t bytes) {
  // The copy of one part is under way while the part before it is taken out of its slot.
  const Slot* before = nullptr;
  std::size_t taken = 0;
  const auto take = [&](std::size_t end) {
    if (before == nullptr) return;
    wait(before->copied);
    std::memcpy(static_cast<std::byte*>(host) + taken, before->data, end - taken);
    taken = end;
  };
  for (std::size_t begin = 0; begin < bytes; begin += slot_bytes) {
    Slot& s = next();
    require(
        cudaMemcpyAsync(s.data, static_cast<const std::byte*>(from) + begin, std::min(slot_bytes, bytes - begin), cudaMemcpyDefault, queue),
        "copy from the GPU");
    record(queue, s.copied);
    take(begin);
    before = &s;
  }
  take(bytes);
}

}  // namespace octet::cuda
