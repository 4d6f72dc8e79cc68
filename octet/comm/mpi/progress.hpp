#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <thread>

#include "octet/comm/mpi/transport.hpp"

namespace octet::comm {

/// Transfers under way while their rank computes. MPI may move bytes only within its calls: between hosts, and within a host where a
/// process may not read another's memory. So a thread tests them, from the first one on. Thread-safe.
class Progress {
 public:
  Progress() = default;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Its number here.
  std::int64_t add(MpiRequest*);
  struct State {
    MpiRequest* request = nullptr;  // null: it is done, or has failed
    int code = 0;                   // 0, or that of MPI
  };
  /// Tests it no longer: the caller does. Throws ContractError for a number that is not there.
  State take(std::int64_t number);
  /// Tests none from now on. They stay under way.
  void forget();

 private:
  void run(const std::stop_token&);

  std::mutex mutex_;
  std::condition_variable_any added_;
  std::map<std::int64_t, State> transfers_;
  std::int64_t last_ = 0;
  std::jthread thread_;
};

}  // namespace octet::comm
