#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace octet {

/// Where a tensor's bytes live. `null` has addresses but no memory: a step on it measures the memory that it needs.
enum class Device : std::uint8_t { cpu, cuda, null };
std::string_view name(Device);

/// Lifetime of an allocation. Each lifetime is one region: a stack that is freed back to a mark, or completely.
enum class Lifetime : std::uint8_t {
  run,          // parameters, optimizer state, quantized weights, tables
  step,         // one optimizer step
  micro_batch,  // activations saved for backward; several micro-batches in flight use several slots
  scratch,      // temporaries, cut back by Scope
  host,         // like run, but in the host's memory, where a GPU reaches it over its bus: for data used once per step
};
inline constexpr int lifetimes = 5;

struct Region {
  Lifetime lifetime;
  int slot = 0;
  constexpr Region(Lifetime l, int slot = 0) : lifetime(l), slot(slot) {}
};

/// The purpose of an allocation: the rows of every memory table.
enum class Category : std::uint8_t { weights, weight_operands, gradients, optimizer, quantizer_state, activations, temporaries, workspace };
inline constexpr int categories = 8;
std::string_view name(Category);

using CategoryBytes = std::array<std::size_t, categories>;

/// Peak bytes of an arena on its device and in the host's memory (Lifetime::host). The footprint is the sum of the regions' peaks, since a
/// region keeps its pages. by_category has the content of each region at its peak; its sum is `total`.
struct MemoryPeak {
  CategoryBytes by_category{};
  std::size_t total = 0;
  std::size_t host = 0;
};

/// Memory of one device in regions, each a stack. Allocation increments an offset: a step makes no system call after the first.
/// A region reserves address space; on the CPU it takes pages when they are first touched, on a GPU when its stack first reaches them.
/// On a GPU freed memory may be reused at once, since one queue orders all work: a side queue has a slot of scratch.
class Arena {
 public:
  static constexpr std::size_t alignment = 256;

  explicit Arena(Device);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Address of `bytes` bytes aligned to 256; never null, also for 0 bytes. Contents are undefined.
  /// Throws DeviceError when the region's address space is exhausted.
  void* allocate(std::size_t bytes, Region, Category);

  /// A position in a region, and the release of everything allocated since.
  struct Mark {
    std::size_t entries = 0, bytes = 0;
  };
  Mark mark(Region);
  void release(Region, Mark);
  void clear(Region r) { release(r, {}); }

  Device device() const { return device_; }
  MemoryPeak peak() const;
  /// Bytes allocated now, over all regions.
  std::size_t in_use() const;

 private:
  struct Stack;
  Stack& stack(Region);

  Device device_;
  std::vector<std::unique_ptr<Stack>> stacks_[lifetimes];
};

}  // namespace octet
