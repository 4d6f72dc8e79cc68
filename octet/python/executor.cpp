#include "octet/python/executor.hpp"

#include <map>
#include <utility>

#include "octet/machine/machine.hpp"

namespace octet::python {

// The order of the own queue in that of the caller, also if work throws.
class Executor::Turn {
 public:
  Turn(Executor& executor, std::uintptr_t queue) : executor_(executor), caller_(reinterpret_cast<cuda::Queue>(queue)) {
    cuda::record(caller_, executor_.before_), cuda::hold(executor_.stream_->queue(), executor_.before_);
  }
  ~Turn() {
    try {
      cuda::record(executor_.stream_->queue(), executor_.after_), cuda::hold(caller_, executor_.after_);
    } catch (const Error&) {
      return;  // the GPU failed, which the caller's next call finds, too
    }
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Executor& executor_;
  cuda::Queue caller_;
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
    before_ = cuda::make_event(false), after_ = cuda::make_event(false);
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
