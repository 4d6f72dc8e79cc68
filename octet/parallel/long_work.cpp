#include "octet/parallel/long_work.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <optional>
#include <thread>

#include "octet/base/clock.hpp"
#include "octet/base/error.hpp"
#include "octet/base/log.hpp"
#include "octet/parallel/host_values.hpp"
#include "octet/tensor/cpu/threads.hpp"

namespace octet::parallel {
namespace {

// Between two questions: little after little work, and far less than the time after which a rank counts as lost.
void pause(double waited_seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(std::clamp(waited_seconds / 16, 1e-4, 0.05)));
}

}  // namespace

void until_idle(Stream& stream, comm::Communicator& ranks, const std::function<bool()>& busy) {
  const auto any_busy = [&] {
    const bool own = busy();
    return ranks.size() == 1 ? own : total(stream, ranks, own) > 0;
  };
  for (const double begin = monotonic_seconds(); any_busy();) pause(monotonic_seconds() - begin);
}

void long_work(Stream& stream, comm::Communicator& ranks, const std::function<void()>& work) {
  if (ranks.size() == 1) return work();
  std::atomic<bool> done = false;
  std::exception_ptr error;
  const bool silent = log::silent();
  const int threads = cpu::threads();
  std::jthread worker([&] {
    const log::Silence silence(silent);
    cpu::set_threads(threads);
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    done = true;
  });
  until_idle(stream, ranks, [&] { return !done; });
  worker.join();
  if (error) std::rethrow_exception(error);
}

void long_work(Device device, comm::Communicator& ranks, const std::function<void()>& work) {
  Stream own(ranks.size() == 1 ? Device::cpu : device);
  long_work(own, ranks, work);
}

void work_of_first(Stream& stream, comm::Communicator& ranks, const std::function<void()>& work) {
  long_work(
      stream, ranks, ranks.rank() == 0 ? work : [] {});
}

std::string text_of_first(Device device, comm::Communicator& ranks, const std::function<std::string()>& work) {
  if (ranks.size() == 1) return work();
  Stream own(device);
  std::string text;
  std::optional<ExitCode> failed;
  work_of_first(own, ranks, [&] {
    try {
      text = work();
    } catch (const Error& e) {
      text = e.what(), failed = e.code();
    }
  });
  const std::int64_t code = of_first(own, ranks, failed ? std::int64_t(*failed) : 0);
  text = of_first(own, ranks, text);
  if (code != 0) throw Error(ExitCode(code), text);
  return text;
}

}  // namespace octet::parallel
