#include "octet/launch/rank_end.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <sstream>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"

namespace octet::launch {
namespace {

bool is(const RankEnd& e, ExitCode code) { return e.signal == 0 && e.code == int(code); }

// The last line that is not empty.
std::string last_line(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  return std::string(text.substr(text.rfind('\n') + 1));
}

}  // namespace

std::string signal_text(int number) {
  const char* const name = ::sigabbrev_np(number);
  return format("signal {}", number) + (name == nullptr ? "" : format(" (SIG{})", name));
}

bool RankEnd::failed() const { return !is(*this, ExitCode::done) && !is(*this, ExitCode::gap) && !is(*this, ExitCode::interrupted); }
bool RankEnd::lost_a_peer() const { return is(*this, ExitCode::ranks); }

std::string to_file(const RankEnd& e) { return format("{} {} {}\n{}", e.code, e.signal, fixed(e.seconds, 6), e.tail); }

RankEnd rank_end_of(int rank, const std::string& text) {
  RankEnd e{.rank = rank};
  std::istringstream first(text.substr(0, text.find('\n')));
  if (!(first >> e.code >> e.signal >> e.seconds)) throw DataError(format("the end of rank {} is not known: its file is damaged", rank));
  e.tail = text.find('\n') == text.npos ? "" : text.substr(text.find('\n') + 1);
  return e;
}

std::string sentence(const RankEnd& e, const std::string& shown) {
  if (e.rank < 0) return e.tail;
  if (e.signal > 0) return format("rank {} was killed by {}", e.rank, signal_text(e.signal));
  const std::string line = last_line(e.tail);
  const bool told = line.empty() || ("\n" + shown + "\n").find("\n" + line + "\n") != std::string::npos;
  return format("rank {} ended with exit code {}{}{}", e.rank, e.code, told ? "" : ": ", told ? "" : line);
}

std::optional<RankEnd> cause(std::vector<RankEnd> ends) {
  std::stable_sort(ends.begin(), ends.end(), [](const RankEnd& a, const RankEnd& b) { return a.seconds < b.seconds; });
  const auto first = [&](const auto& holds) -> std::optional<RankEnd> {
    const auto it = std::find_if(ends.begin(), ends.end(), holds);
    return it == ends.end() ? std::nullopt : std::optional(*it);
  };
  const auto failure = first([](const RankEnd& e) { return e.failed(); });
  if (!failure) return first([](const RankEnd& e) { return e.status() != 0; });
  if (!failure->lost_a_peer()) return failure;
  const auto real = first([](const RankEnd& e) { return e.failed() && !e.lost_a_peer() && e.signal != SIGTERM && e.signal != SIGKILL; });
  return real ? real : failure;
}

bool may_succeed_again(const RankEnd& e) { return e.signal > 0 || e.lost_a_peer(); }

}  // namespace octet::launch
