#pragma once

#include <optional>

#include "octet/launch/process.hpp"
#include "octet/launch/rank_folder.hpp"
#include "octet/launch/rank_handle.hpp"

namespace octet::launch {

/// How the ranks of one start ended.
struct Ended {
  std::vector<RankEnd> ranks;  // those that told their end
  int silent = 0;              // ranks that did not
  int started = 0;             // ranks that had told their processes
  int starter_status = 0;      // of the first started process that ended with another status than 0
  int starter_signal = 0;      // that ended it
  bool folder_lost = false;    // RankFolder was removed
  bool stopped = false;        // by a signal to this process
  std::string run = {};        // folder of the run that the ranks had begun, or ""
};

/// Watches the processes of one start from their start to their end.
class Supervisor {
 public:
  /// ranks: that tell their ends in the folder.
  Supervisor(RankFolder, int ranks, double grace_seconds);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;

  /// Returns when all processes have ended. Throws DeviceError if one cannot be started.
  Ended run(const std::vector<Start>&);

 private:
  void reap();
  void watch_folder();
  void find_processes();
  void await_processes();
  void take(int signal);
  void pass_on();
  void watch_ends();
  void ask_others();
  void end_others();
  void signal_others(int signal) const;
  bool all_ended() const;
  std::optional<double> grace_begin() const;
  void release();
  void kill_all();

  RankFolder folder_;
  int ranks_;
  double grace_seconds_;
  sigset_t heeded_, before_;
  std::vector<pid_t> processes_{};   // that have not ended
  std::vector<int> signals_{};       // that came, in order
  std::vector<std::size_t> passed_;  // how many of them each rank has got
  std::vector<bool> asked_;          // ranks that have got SIGTERM from us
  std::vector<std::optional<RankHandle>> ranks_begun_;
  std::vector<std::optional<RankEnd>> ends_;
  std::optional<double> failed_at_{}, stopped_at_{}, asked_at_{}, released_at_{};
  bool killed_ = false, folder_lost_ = false;
  int starter_status_ = 0, starter_signal_ = 0;
  std::string run_{};
};

}  // namespace octet::launch
