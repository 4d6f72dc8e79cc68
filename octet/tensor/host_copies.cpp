#include "octet/tensor/host_copies.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

namespace octet {
namespace {

constexpr std::size_t most_bytes = std::size_t(64) << 20;  // of a piece: so that threads have equal work
constexpr std::size_t most_threads = 8;                    // new pages of the host, which threads clear, are slower than the bus

}  // namespace

// One thread's way from the device to the host.
class HostCopies::Copier {
 public:
  Copier(Device device, const StreamEvent& begin) {
    if (device == Device::cuda) stream_.emplace(device), begin.wait(*stream_);
  }
  void copy(const Portion& p) {
    if (!stream_) return void(std::memcpy(p.to, p.from, p.bytes));
    stream_->staging().download(stream_->queue(), p.from, p.to, p.bytes);
  }

 private:
  std::optional<Stream> stream_;
};

HostCopies::HostCopies(Stream& stream, std::vector<Copy> parts) : device_(stream.device()) {
  begin_.record(stream);
  for (const Copy& p : parts)
    for (std::size_t at = 0; at < p.from.bytes(); at += most_bytes)
      pieces_.push_back({p.from.u8() + at, p.to + at, std::min(most_bytes, p.from.bytes() - at)});
  for (Portion& p : pieces_) check(p.from != nullptr, "host copies: a tensor has no memory");
}

std::size_t HostCopies::bytes() const {
  std::size_t sum = 0;
  for (const Portion& p : pieces_) sum += p.bytes;
  return sum;
}

void HostCopies::run() {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    try {
      Copier copier(device_, begin_);
      for (std::size_t i = next++; i < pieces_.size(); i = next++) copier.copy(pieces_[i]);
    } catch (...) {
      const std::lock_guard lock(mutex);
      error = std::current_exception();
      next = pieces_.size();
    }
  };
  {
    std::vector<std::jthread> threads;
    const std::size_t processors = std::max(1u, std::thread::hardware_concurrency() / 2);
    for (std::size_t n = std::min({most_threads, processors, pieces_.size()}); n > 1; --n) threads.emplace_back(work);
    work();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace octet
