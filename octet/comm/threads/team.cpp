#include "octet/comm/threads/team.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace octet::comm {

Team::Team(int size, double limit_seconds)
    : limit_seconds_(limit_seconds), notes_(std::size_t(size)), meetings_(std::size_t(size)), gone_(std::size_t(size)) {}

template <class Ready>
bool Team::wait(std::unique_lock<std::mutex>& lock, const Ready& ready) {
  const auto limit = std::chrono::steady_clock::now() +
                     std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(limit_seconds_));
  return changed_.wait_until(lock, limit, [&] { return failure_ || ready(); }) && !failure_;
}

int Team::absent() const { return int(std::min_element(meetings_.begin(), meetings_.end()) - meetings_.begin()); }

std::optional<Team::Failure> Team::set_failure(int peer, std::string what) {
  if (!failure_) failure_ = Failure{peer, std::move(what)};
  changed_.notify_all();
  return failure_;
}
std::optional<Team::Failure> Team::late(int peer, const char* what) {
  return set_failure(peer, format("{} within {} s", what, limit_seconds_));
}
std::optional<Team::Failure> Team::ended(int peer) { return set_failure(peer, "has ended"); }

// The number of arrivals that ends this meeting.
std::int64_t Team::arrive(int rank) {
  const std::int64_t all = ++meetings_[std::size_t(rank)] * size();
  if (++arrived_ == all) changed_.notify_all();
  return all;
}

std::optional<Team::Failure> Team::meet(int rank, const void* note) {
  std::unique_lock lock(mutex_);
  if (failure_) return failure_;
  if (const auto gone = std::find(gone_.begin(), gone_.end(), true); gone != gone_.end()) return ended(int(gone - gone_.begin()));
  notes_[std::size_t(rank)] = note;
  const std::int64_t all = arrive(rank);
  if (wait(lock, [&] { return arrived_ >= all; }) || arrived_ >= all) return {};
  return late(absent(), "has not come");
}

void Team::part(int rank) {
  std::unique_lock lock(mutex_);
  const std::int64_t all = arrive(rank);
  changed_.wait(lock, [&] { return arrived_ >= all; });
}

std::optional<Team::Failure> Team::post(int from, int to, const Tensor& x) {
  const std::lock_guard lock(mutex_);
  if (failure_) return failure_;
  if (gone_[std::size_t(to)]) return ended(to);
  posts_[{from, to}].waiting.push_back(x);
  changed_.notify_all();
  return {};
}

std::optional<Team::Failure> Team::taken(int from, int to, std::int64_t number) {
  std::unique_lock lock(mutex_);
  Post& post = posts_[{from, to}];
  const bool in_time = wait(lock, [&] { return post.taken >= number || gone_[std::size_t(to)]; });
  if (post.taken >= number) return {};
  post.waiting.clear();
  return in_time ? ended(to) : late(to, "has not received");
}

std::optional<Team::Failure> Team::take(int from, int to, const Tensor& x) {
  std::unique_lock lock(mutex_);
  Post& post = posts_[{from, to}];
  if (!wait(lock, [&] { return !post.waiting.empty() || gone_[std::size_t(from)]; })) return late(from, "has not sent");
  if (post.waiting.empty()) return ended(from);
  const Tensor& sent = post.waiting.front();
  if (sent.dtype != x.dtype || sent.count() != x.count()) {
    return set_failure(from, format("sent {} {}, but {} {} is received", sent.dtype, sent.shape, x.dtype, x.shape));
  }
  std::memcpy(x.data, sent.data, x.bytes());
  post.waiting.pop_front(), ++post.taken;
  changed_.notify_all();
  return {};
}

void Team::withdraw(int from) {
  const std::lock_guard lock(mutex_);
  for (auto& [ranks, post] : posts_)
    if (ranks.first == from) post.waiting.clear();
}

void Team::leave(int rank) {
  const std::lock_guard lock(mutex_);
  gone_[std::size_t(rank)] = true;
  const bool awaited = *std::max_element(meetings_.begin(), meetings_.end()) > meetings_[std::size_t(rank)];
  if (awaited) ended(rank);
  changed_.notify_all();
}

void Team::fail(int rank, const std::string& what) {
  std::vector<std::shared_ptr<Team>> parts;
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = Failure{rank, what};
    for (const auto& part : subsets_)
      if (auto it = part.lock()) parts.push_back(std::move(it));
    changed_.notify_all();
  }
  for (const auto& part : parts) part->fail(-1, sentence(rank, what));  // their ranks have other numbers
}

std::shared_ptr<Team> Team::subset(int size) {
  auto team = std::make_shared<Team>(size, limit_seconds_);
  const std::lock_guard lock(mutex_);
  std::erase_if(subsets_, [](const auto& p) { return p.expired(); });
  subsets_.push_back(team);
  return team;
}

}  // namespace octet::comm
