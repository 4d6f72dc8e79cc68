#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "octet/data/mixture.hpp"
#include "octet/tensor/state.hpp"

namespace octet::data {

/// Endless training batches in an order that is a pure function of (seed, sample number, mixture): Mixture. Of one text alone, sample g
/// shows window permutation(g mod n) of epoch floor(g / n), n = windows.count(), with one Permutation per epoch. The order does not depend
/// on rows per batch, threads or the number of readers. The whole state is one integer, the next sample's number.
///
/// A background thread prepares batches ahead. next(), seek(), position() and wait_seconds() are for one consumer thread.
class Loader {
 public:
  struct Options {
    std::int64_t rows = 1;    // of every batch
    std::int64_t stride = 0;  // samples from one batch's first to the next one's; 0 = rows
    std::int64_t offset = 0;  // where in each stride this reader's rows begin: reader i of n has stride n * rows, offset i * rows
    std::uint64_t seed = 0;
    std::int64_t prefetch = 4;  // batches kept ready, at least 1
  };

  /// The datasets behind the mixture must outlive the loader.
  Loader(const Mixture& mixture, const Options& options);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch. Throws the errors of its reading (DataError, IoError), again at every call until seek().
  Batch next();
  /// The number of the sample at which the next stride begins: 0 at first, a multiple of the stride afterwards.
  std::uint64_t position() const { return position_; }
  /// Continues at sample `position`, as a resumed run does.
  void seek(std::uint64_t position);
  void visit_state(StateVisitor&);
  /// Samples in one pass over the first text's windows.
  std::uint64_t epoch_samples() const { return mixture_.epoch_samples(); }
  /// Seconds that next() has waited for data, in all.
  double wait_seconds() const { return wait_seconds_; }

 private:
  struct Item {
    Batch batch;
    std::exception_ptr error;
  };
  Item prepare(std::uint64_t position) const;
  void run(const std::stop_token& stop);

  Mixture mixture_;
  Options options_;
  std::uint64_t position_ = 0;
  double wait_seconds_ = 0;

  std::mutex mutex_;
  std::condition_variable_any room_, filled_;
  std::deque<Item> ready_;        // guarded by mutex_
  std::uint64_t prepare_at_ = 0;  // guarded by mutex_: the position of the next item of ready_
  std::uint64_t seeks_ = 0;       // guarded by mutex_: identifies an item prepared before a seek
  std::jthread thread_;           // last: it is stopped and joined before anything that it uses goes
};

}  // namespace octet::data
