#include "octet/data/loader.hpp"

#include <chrono>
#include <utility>

#include "octet/base/check.hpp"

namespace octet::data {
namespace {

Loader::Options checked(Loader::Options options) {
  check(options.rows >= 1, "loader: a batch must have at least 1 row, got {}", options.rows);
  check(options.prefetch >= 1, "loader: at least 1 batch must be kept ready, got {}", options.prefetch);
  if (options.stride == 0) options.stride = options.rows;
  check(options.offset >= 0 && options.offset + options.rows <= options.stride, "loader: rows {} to {} must lie in the stride of {}",
        options.offset, options.offset + options.rows, options.stride);
  return options;
}

}  // namespace

Loader::Loader(const Mixture& mixture, const Options& options)
    : mixture_(mixture), options_(checked(options)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

Loader::Item Loader::prepare(std::uint64_t position) const {
  Item item;
  try {
    Batch& batch = item.batch;
    batch = batch_for(mixture_.first(), options_.rows);
    batch.first_sample = position + std::uint64_t(options_.offset);
    for (std::int64_t r = 0; r < batch.rows; ++r) mixture_.read(batch.first_sample + std::uint64_t(r), options_.seed, batch, r);
  } catch (...) {
    item.error = std::current_exception();
  }
  return item;
}

void Loader::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  for (;;) {
    room_.wait(lock, stop, [&] { return ready_.size() < std::size_t(options_.prefetch); });
    if (stop.stop_requested()) return;
    const std::uint64_t position = prepare_at_, seeks = seeks_;
    lock.unlock();
    Item item = prepare(position);
    lock.lock();
    if (seeks != seeks_) continue;
    ready_.push_back(std::move(item));
    prepare_at_ += std::uint64_t(options_.stride);
    filled_.notify_one();
  }
}

Batch Loader::next() {
  std::unique_lock lock(mutex_);
  if (ready_.empty()) {
    const auto begin = std::chrono::steady_clock::now();
    filled_.wait(lock, [&] { return !ready_.empty(); });
    wait_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  if (ready_.front().error) std::rethrow_exception(ready_.front().error);
  Batch batch = std::move(ready_.front().batch);
  ready_.pop_front();
  position_ += std::uint64_t(options_.stride);
  room_.notify_one();
  return batch;
}

void Loader::seek(std::uint64_t position) {
  const std::scoped_lock lock(mutex_);
  ready_.clear();
  position_ = prepare_at_ = position;
  ++seeks_;
  room_.notify_one();
}

void Loader::visit_state(StateVisitor& visitor) {
  auto position = std::int64_t(position_);
  visitor.count("next_sample", position);
  if (visitor.restoring()) seek(std::uint64_t(position));
}

}  // namespace octet::data
