#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "octet/tensor/stream.hpp"

namespace octet {

/// Work of a backward that is left for later because nothing else in the micro-batch reads its results: the products of weights'
/// gradients. Its operands are in `region`, which the owner clears after run(); all other memory of the backward may be reused before.
class DeferredWork {
 public:
  explicit DeferredWork(Region region) : region_(region) {}

  Region region() const { return region_; }
  void add(std::function<void(Stream&)> work) { work_.push_back(std::move(work)); }
  /// All work in the order in which it was added. Then there is none.
  void run(Stream& stream) {
    for (const auto& work : std::exchange(work_, {})) work(stream);
  }

 private:
  Region region_;
  std::vector<std::function<void(Stream&)>> work_;
};

}  // namespace octet
