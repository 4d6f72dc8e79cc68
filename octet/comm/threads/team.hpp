#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "octet/comm/communicator.hpp"

namespace octet::comm {

/// The sentence of a Failure, by a number of its rank.
inline std::string sentence(int rank, const std::string& what) { return rank < 0 ? what : format("rank {} {}", rank, what); }

/// The shared state of a communicator whose ranks are threads of one process. Thread-safe.
class Team {
 public:
  Team(int size, double limit_seconds);

  int size() const { return int(notes_.size()); }
  double limit_seconds() const { return limit_seconds_; }

  /// The reason why the team has ended: the rank to blame and its fault, "has ended"; or, with -1, a sentence.
  struct Failure {
    int peer = -1;
    std::string what;
  };
  /// Returns when all ranks have come with their notes, which all may read until they part(); a failure if one has not within the limit, or
  /// has failed. Either all ranks get a failure or none.
  std::optional<Failure> meet(int rank, const void* note);
  /// Returns when all ranks that met are done with the notes, also after a failure: memory that another rank reads must not be freed.
  void part(int rank);
  const void* note(int rank) const { return notes_[std::size_t(rank)]; }

  /// Puts a tensor where rank `to` finds it, after those that wait there. It must live until taken(), or withdraw(), has returned.
  std::optional<Failure> post(int from, int to, const Tensor&);
  /// Returns when rank `to` has taken so many of the tensors of `from`.
  std::optional<Failure> taken(int from, int to, std::int64_t number);
  /// Copies the first of the posted tensors to this one.
  std::optional<Failure> take(int from, int to, const Tensor&);
  /// No rank takes a tensor that this one has posted so far.
  void withdraw(int from);

  /// The rank will not come again: waits for it end at once.
  void leave(int rank);
  /// Ends every wait of all ranks, also in the teams split from this one.
  void fail(int rank, const std::string& what);
  /// A team of some of these ranks, which fails with this one.
  std::shared_ptr<Team> subset(int size);

 private:
  template <class Ready>
  bool wait(std::unique_lock<std::mutex>&, const Ready&);
  std::int64_t arrive(int rank);
  int absent() const;
  std::optional<Failure> late(int peer, const char* what);
  std::optional<Failure> ended(int peer);
  std::optional<Failure> set_failure(int peer, std::string what);

  double limit_seconds_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Failure> failure_;
  std::vector<const void*> notes_;
  std::vector<std::int64_t> meetings_;  // of each rank
  std::vector<bool> gone_;              // ranks that have left
  std::int64_t arrived_ = 0;            // at all meetings
  struct Post {
    std::deque<Tensor> waiting;
    std::int64_t taken = 0;
  };
  std::map<std::pair<int, int>, Post> posts_;  // by sender and receiver
  std::vector<std::weak_ptr<Team>> subsets_;
};

}  // namespace octet::comm
