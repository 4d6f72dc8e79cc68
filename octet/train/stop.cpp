#include "octet/train/stop.hpp"

#include <atomic>

namespace octet::train {
namespace {

std::atomic<bool> requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

}  // namespace

void request_stop() { requested = true; }
bool stop_requested() { return requested; }

}  // namespace octet::train
