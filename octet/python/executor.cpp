#include "octet/python/executor.hpp"

#include <map>
#include <utility>

#include "octet/machine/machine.hpp"
#include "octet/tensor/cuda/peer.hpp"

namespace octet::python {

// Work goes into the caller's queue. Where that is not the last caller's, it waits for the work of that one, which has the same scratch.
// A queue that a graph is recorded of waits for nothing, since only work of that graph may be waited for.
class Executor::Turn {
 public:
  Turn(Executor& executor, std::uintptr_t queue)
      : executor_(executor),
        caller_(reinterpret_cast<cuda::Queue>(queue)),
        recorded_(cuda::is_recording(caller_)),
        work_(*executor.stream_, caller_) {
    if (!recorded_ && caller_ != executor_.last_) cuda::hold(caller_, executor_.done_);
  }
  ~Turn() {
    if (recorded_) return;
    try {
      cuda::record(caller_, executor_.done_), executor_.last_ = caller_;
    } catch (const Error&) {
      return;  // the GPU failed, which the caller's next call finds, too
    }
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Executor& executor_;
  cuda::Queue caller_;
  bool recorded_;
  QueueOfCaller work_;
};

Executor& Executor::of(Device device, int index) {
  static std::mutex mutex;
  // Never destroyed: CUDA may be gone before objects of static lifetime.
  static auto& all = *new std::map<std::pair<Device, int>, std::unique_ptr<Executor>>;
  const std::scoped_lock lock(mutex);
  std::unique_ptr<Executor>& one = all[{device, index}];
  if (!one) one.reset(new Executor(device, machine::machine_target(device)));
  return *one;
}

Executor::Executor(Device device, const Target& target) : device_(device), target_(target) {
  if (device == Device::cpu) {
    aside_ = std::make_unique<Aside>();
    aside_->run([&] { stream_ = std::make_unique<Stream>(device, target); }, [] {});
  } else {
    stream_ = std::make_unique<Stream>(device, target);
    done_ = cuda::make_event(false);
  }
}

Executor::~Executor() = default;

void Executor::run(std::uintptr_t queue, const std::function<void(Stream&)>& work) {
  if (aside_) return aside_->run([&] { work(*stream_); }, [] {});
  const std::scoped_lock lock(turn_);
  const Turn turn(*this, queue);
  work(*stream_);
}

}  // namespace octet::python
