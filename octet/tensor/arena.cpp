#include "octet/tensor/arena.hpp"

#include <atomic>

#include "octet/base/check.hpp"
#include "octet/tensor/allocation_trace.hpp"
#include "octet/tensor/cpu/memory.hpp"
#include "octet/tensor/cuda/memory.hpp"
#include "octet/tensor/shape.hpp"

namespace octet {

std::string_view name(Category c) {
  constexpr std::string_view names[] = {"weights",         "weights for GEMMs", "gradients",   "optimizer",
                                        "quantizer state", "activations",       "temporaries", "workspace"};
  return names[std::size_t(c)];
}

std::string_view name(Device d) {
  constexpr std::string_view names[] = {"cpu", "cuda", "null"};
  return names[std::size_t(d)];
}

namespace {

constexpr std::size_t null_bytes = std::size_t(1) << 46;

// Of the null device, where nothing is reserved. No two regions have the same ones: work compares addresses to find tensors that overlap.
std::byte* unused_addresses() {
  static std::atomic<std::size_t> regions{0};
  return reinterpret_cast<std::byte*>((1 + regions++ % 65536) * null_bytes);
}

}  // namespace

// One region: a reserved span of addresses, and the list of its allocations.
struct Arena::Stack {
  struct Entry {
    std::size_t bytes;
    Category category;
  };

  Stack(Device device, Lifetime lifetime) : device(device), on_host(lifetime == Lifetime::host) {
    if (device == Device::null) base = unused_addresses(), capacity = null_bytes;
    if (device == Device::cpu) pages = cpu::Pages::reserve(), base = pages.data(), capacity = pages.bytes();
    if (device == Device::cuda && on_host) host_pages = cuda::HostPages::reserve(), base = host_pages.data(), capacity = host_pages.bytes();
    if (device == Device::cuda && !on_host) gpu_pages = cuda::Pages::reserve(), base = gpu_pages.data(), capacity = gpu_pages.bytes();
  }

  // Memory for everything that is used.
  void take() {
    if (device == Device::cuda && on_host) host_pages.take(highest);
    if (device == Device::cuda && !on_host) gpu_pages.take(highest);
  }

  Device device;
  bool on_host;
  cpu::Pages pages;
  cuda::Pages gpu_pages;
  cuda::HostPages host_pages;
  std::byte* base = nullptr;
  std::size_t capacity = 0, used = 0, highest = 0;
  std::vector<Entry> entries;
  CategoryBytes now{}, at_highest{};
};

Arena::Arena(Device device) : device_(device) {}
Arena::~Arena() = default;

Arena::Stack& Arena::stack(Region r) {
  auto& slots = stacks_[std::size_t(r.lifetime)];
  while (slots.size() <= std::size_t(r.slot)) slots.push_back(std::make_unique<Stack>(device_, r.lifetime));
  return *slots[std::size_t(r.slot)];
}

void* Arena::allocate(std::size_t bytes, Region region, Category category) {
  Stack& s = stack(region);
  const std::size_t rounded = std::size_t(round_up(std::int64_t(bytes), alignment));
  if (rounded > s.capacity - s.used)
    throw DeviceError(
        format("out of memory: {} more bytes asked of a region that holds {} of {}; use a smaller batch, a shorter sequence, or recompute",
               bytes, bytes_text(double(s.used)), bytes_text(double(s.capacity))));
  void* const address = s.base + s.used;
  if (region.lifetime != Lifetime::run && region.lifetime != Lifetime::host) AllocationTrace::note(address, rounded);
  s.used += rounded;
  s.entries.push_back({rounded, category});
  s.now[std::size_t(category)] += rounded;
  if (s.used > s.highest) {
    s.highest = s.used, s.at_highest = s.now;
    s.take();
  }
  return address;
}

Arena::Mark Arena::mark(Region region) {
  const Stack& s = stack(region);
  return {s.entries.size(), s.used};
}

void Arena::release(Region region, Mark mark) {
  Stack& s = stack(region);
  check(mark.entries <= s.entries.size(), "arena: a region was cut back twice, or out of order");
  while (s.entries.size() > mark.entries) {
    s.now[std::size_t(s.entries.back().category)] -= s.entries.back().bytes;
    s.entries.pop_back();
  }
  s.used = mark.bytes;
}

MemoryPeak Arena::peak() const {
  MemoryPeak out;
  for (const auto& slots : stacks_)
    for (const auto& s : slots) {
      if (s->on_host) out.host += s->highest;
      if (s->on_host) continue;
      out.total += s->highest;
      for (std::size_t c = 0; c < categories; ++c) out.by_category[c] += s->at_highest[c];
    }
  return out;
}

std::size_t Arena::in_use() const {
  std::size_t bytes = 0;
  for (const auto& slots : stacks_)
    for (const auto& s : slots) bytes += s->used;
  return bytes;
}

}  // namespace octet
