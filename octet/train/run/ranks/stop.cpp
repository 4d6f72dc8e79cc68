#include "octet/train/run/ranks/stop.hpp"

#include <atomic>

namespace octet::train {
namespace {

std::atomic<bool> stop{false}, save{false};
static_assert(std::atomic<bool>::is_always_lock_free, "signal handlers set them");

}  // namespace

void request_stop() { stop = true; }
bool stop_requested() { return stop; }
void withdraw_requests() { stop = false, save = false; }

void request_save() { save = true; }
bool take_save_request() { return save.exchange(false); }

}  // namespace octet::train
