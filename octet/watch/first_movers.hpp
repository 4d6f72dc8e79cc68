#pragma once

#include <cstdint>
#include <vector>

#include "octet/telemetry/event.hpp"

namespace octet::watch {

/// A tensor whose maximum left its usual range.
struct Mover {
  std::size_t tensor = 0;
  std::int64_t step = 0;  // the first one outside
  double bits = 0;  // log2(amax / its median over the steps before the window's middle) there; infinite for a maximum that is not finite
  double deviations = 0;  // |bits| / max(1.4826 * median |deviation of log2 amax|, 0.25 bits)
};

/// Tensors that moved in `events`, whose first `quiet` are the reference: those with a later maximum that is not finite, is 0, or is more
/// than 6 deviations from its median in the reference. The earliest first, then the largest move. At most `most`.
std::vector<Mover> first_movers(const std::vector<telemetry::ScalesEvent>& events, std::size_t quiet, std::size_t most);

}  // namespace octet::watch
