#include "octet/tensor/allocation_trace.hpp"

namespace octet {

thread_local AllocationTrace* AllocationTrace::now_ = nullptr;

AllocationTrace::~AllocationTrace() { now_ = outer_; }

// FNV-1a, by words.
void AllocationTrace::add(const void* address, std::size_t bytes) {
  for (const std::uint64_t word : {std::uint64_t(reinterpret_cast<std::uintptr_t>(address)), std::uint64_t(bytes)})
    value_ = (value_ ^ word ^ 0xCBF29CE484222325u) * 0x100000001B3u, value_ ^= value_ >> 29;
}

}  // namespace octet
