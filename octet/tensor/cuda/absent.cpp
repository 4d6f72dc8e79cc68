// Errors of a program compiled without the CUDA toolkit when a GPU is requested.
#ifndef OCTET_HAS_CUDA

#include "octet/base/error.hpp"
#include "octet/tensor/backend.hpp"
#include "octet/tensor/cuda/bus.hpp"
#include "octet/tensor/cuda/device.hpp"
#include "octet/tensor/cuda/event.hpp"
#include "octet/tensor/cuda/graph.hpp"
#include "octet/tensor/cuda/memory.hpp"
#include "octet/tensor/cuda/peer.hpp"
#include "octet/tensor/cuda/side_queue.hpp"
#include "octet/tensor/cuda/staging.hpp"
#include "octet/tensor/cuda/trace.hpp"

namespace octet::cuda {

bool built() { return false; }
const std::string& why_unavailable() {
  static const std::string why = "this program was compiled without the CUDA toolkit; install it and build again";
  return why;
}
void not_built() { throw DeviceError("no GPU can be used: " + why_unavailable()); }

const Facts& facts() { not_built(); }
std::string bus_address() { not_built(); }
std::size_t free_bytes() { not_built(); }
void* open_library(const char*) { not_built(); }
std::string library_path(const char*) { return ""; }
void* function_in(void*, const char*) { not_built(); }

Queue make_queue(bool) { not_built(); }
Queue make_side_queue(int) { not_built(); }
void end_queue(Queue) {}
void wait(Queue) { not_built(); }
void copy(Queue, const void*, void*, std::size_t) { not_built(); }
void clear(Queue, void*, std::size_t) { not_built(); }

void Graph::begin(Queue) { not_built(); }
Graph Graph::end(Queue) { not_built(); }
Graph::~Graph() = default;
void Graph::abandon(Queue) noexcept {}
void Graph::launch(Queue) const { not_built(); }

Event make_event(bool) { not_built(); }
void end_event(Event) {}
void record(Queue, Event) { not_built(); }
void hold(Queue, Event) { not_built(); }
double seconds_between(Event, Event) { not_built(); }

void begin_trace() { not_built(); }
std::int64_t trace_clock() { not_built(); }
std::vector<TracedActivity> end_trace() { not_built(); }

Staging::~Staging() = default;
void Staging::upload(Queue, const void*, void*, std::size_t) { not_built(); }
void Staging::download(Queue, const void*, void*, std::size_t) { not_built(); }

Pages Pages::reserve() { not_built(); }
Pages::~Pages() = default;
void Pages::take(std::size_t) { not_built(); }
HostPages HostPages::reserve() { not_built(); }
HostPages::~HostPages() = default;
void HostPages::take(std::size_t) { not_built(); }

SharedMemory::SharedMemory(std::size_t) { not_built(); }
SharedMemory::~SharedMemory() = default;
SharedMemory::Handle SharedMemory::handle() const { not_built(); }
PeerMemory::PeerMemory(const SharedMemory::Handle&) { not_built(); }
PeerMemory::~PeerMemory() = default;
PinnedMemory::PinnedMemory(void* at, std::size_t) : at_(at) { not_built(); }
PinnedMemory::~PinnedMemory() = default;
void await_flag(Queue, const std::byte*, std::uint32_t) { not_built(); }
void set_flag(Queue, std::byte*, std::uint32_t) { not_built(); }
bool is_recording(Queue) { not_built(); }

}  // namespace octet::cuda

#endif
