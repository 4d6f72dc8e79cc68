#pragma once

#include <cstddef>
#include <cstdint>

namespace octet {

/// A number for the allocations that a thread has made from arenas while this exists: another one where addresses or sizes differ. Memory
/// of the run, which is never freed, is left out: it is allocated on first use.
class AllocationTrace {
 public:
  AllocationTrace() : outer_(now_) { now_ = this; }
  ~AllocationTrace();
  AllocationTrace(const AllocationTrace&) = delete;
  AllocationTrace& operator=(const AllocationTrace&) = delete;

  std::uint64_t value() const { return value_; }
  /// Called by arenas.
  static void note(const void* address, std::size_t bytes) {
    for (AllocationTrace* t = now_; t != nullptr; t = t->outer_) t->add(address, bytes);
  }

 private:
  void add(const void* address, std::size_t bytes);

  static thread_local AllocationTrace* now_;
  AllocationTrace* outer_;
  std::uint64_t value_ = 0;
};

}  // namespace octet
