#pragma once

#include <optional>
#include <string>
#include <vector>

namespace octet::launch {

/// How the process of a rank ended.
struct RankEnd {
  int rank = 0;        // below 0: not a rank but the process that should have started them, and `tail` says what happened
  int code = 0;        // its exit code, where no signal ended it
  int signal = 0;      // that ended it; 0: none
  double seconds = 0;  // monotonic_seconds() of its end
  std::string tail{};  // the last lines of its standard error, if it was not shown

  /// The exit code by which a shell reports it: 128 + n for signal n.
  int status() const { return signal > 0 ? 128 + signal : code; }
  /// Whether the other ranks cannot continue: neither done, nor stopped in order (exit codes 3 and 75).
  bool failed() const;
  /// Whether another rank is to blame: exit code 76.
  bool lost_a_peer() const;
};

/// Text of a file, and back. Throws DataError when it is no such text.
std::string to_file(const RankEnd&);
RankEnd rank_end_of(int rank, const std::string& text);

/// "signal 9 (SIGKILL)".
std::string signal_text(int number);

/// "rank 2 was killed by signal 9 (SIGKILL)", "rank 1 ended with exit code 64: <its last line>", without a line that is among those of
/// `shown`.
std::string sentence(const RankEnd&, const std::string& shown = "");

/// The end that decides the launcher's exit code: the first failure in time. If that one only lost a peer, the first later failure by
/// another exit code, or by a signal that does not stem from ending the others (SIGTERM, SIGKILL). Without a failure, the first end whose
/// code is not 0; none if all are done.
std::optional<RankEnd> cause(std::vector<RankEnd>);

/// Whether starting again may help: a peer was lost, or a signal ended a rank.
bool may_succeed_again(const RankEnd&);

}  // namespace octet::launch
