#include "octet/comm/threads/threads.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <numeric>
#include <system_error>
#include <thread>

#include "octet/comm/combine.hpp"
#include "octet/comm/threads/team.hpp"
#include "octet/tensor/cpu/threads.hpp"

namespace octet::comm {
namespace {

// Elements of an all_reduce that a rank adds.
struct Share {
  std::int64_t begin, count;
};
Share share_of(std::int64_t count, int rank, int size) {
  const std::int64_t begin = count * rank / size;
  return {begin, count * (rank + 1) / size - begin};
}

Tensor part(const Tensor& x, std::int64_t begin, std::int64_t n) { return {x.u8() + std::size_t(begin) * size_of(x.dtype), {n}, x.dtype}; }

void copy_bytes(const Tensor& from, const Tensor& to) {
  if (from.data != to.data && to.bytes() > 0) std::memcpy(to.data, from.data, to.bytes());
}

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<Team> team, int rank) : Communicator(rank, team->size()), team_(std::move(team)) {}
  using Communicator::split;
  std::unique_ptr<Communicator> split(int color, int key) override;
  void withdraw_sends() override { team_->withdraw(rank()); }

 private:
  void run(Stream&, const Call&, const Call* second) override;
  void await_send(const Call& call, const BegunSend& begun) override { require(call, team_->taken(rank(), call.peer, begun.number)); }
  void begin_exchange(Stream&, const Call&) override;
  void await_exchange(const Call&, const BegunExchange&) override;
  void transfer(const Call&, const Call* second);
  void compute(const Call&);
  void reduce(const Call&);
  std::optional<Team::Failure> compare() const;
  std::optional<Team::Failure> compare_counts() const;
  void exchange_uneven(const Call&);

  void require(const Call& call, const std::optional<Team::Failure>& failure) {
    if (failure) throw error(call, name_of(failure->peer), sentence(name_of(failure->peer), failure->what));
  }
  const Call& of(int rank) const { return *static_cast<const Call*>(team_->note(rank)); }

  std::shared_ptr<Team> team_;
};

void ThreadCommunicator::run(Stream& stream, const Call& call, const Call* second) {
  require_host_memory(stream, "threads");
  if (stream.device() == Device::null) return;
  if (call.kind == Collective::send || call.kind == Collective::receive) return transfer(call, second);
  require(call, team_->meet(rank(), &call));
  const std::optional<Team::Failure> difference = compare();
  if (!difference) compute(call);
  team_->part(rank());
  if (difference) team_->fail(difference->peer, difference->what);
  require(call, difference);
}

// Every rank finds the same first difference.
std::optional<Team::Failure> ThreadCommunicator::compare() const {
  for (int r = 1; r < size(); ++r) {
    const Call &a = of(0), &b = of(r);
    const bool same_count = a.uneven() ? b.uneven() : !b.uneven() && a.from.count() == b.from.count();
    if (a.kind != b.kind || !same_count || a.from.dtype != b.from.dtype || a.reduction != b.reduction || a.peer != b.peer)
      return Team::Failure{r, format("calls {}, but rank {} {}", to_text(b), name_of(0), to_text(a))};
  }
  return of(0).uneven() ? compare_counts() : std::nullopt;
}

std::optional<Team::Failure> ThreadCommunicator::compare_counts() const {
  for (int to = 0; to < size(); ++to)
    for (int from = 0; from < size(); ++from)
      if (const std::int64_t sent = of(from).sent[std::size_t(to)], wanted = of(to).received[std::size_t(from)]; sent != wanted)
        return Team::Failure{from, format("sends {} values to rank {}, which wants {}", sent, name_of(to), wanted)};
  return {};
}

void ThreadCommunicator::transfer(const Call& call, const Call* second) {
  if (call.kind == Collective::receive) return require(call, team_->take(call.peer, rank(), call.to));
  require(call, team_->post(rank(), call.peer, call.from));
  if (second != nullptr) require(*second, team_->take(second->peer, rank(), second->to));
  if (!call.begins) require(call, team_->taken(rank(), call.peer, sends_to(call.peer)));
}

void ThreadCommunicator::reduce(const Call& call) {
  const bool scatter = call.kind == Collective::reduce_scatter;
  const Share own = scatter ? Share{rank() * call.to.count(), call.to.count()} : share_of(call.to.count(), rank(), size());
  const Tensor to = scatter ? call.to : part(call.to, own.begin, own.count);
  std::vector<const void*> in;
  for (int r = 0; r < size(); ++r) in.push_back(part(of(r).from, own.begin, own.count).data);
  combine(call.reduction, in, to);
  if (scatter) return;
  for (int r = 0; r < size(); ++r) copy_bytes(to, part(of(r).to, own.begin, own.count));
}

void ThreadCommunicator::exchange_uneven(const Call& call) {
  std::int64_t at = 0;
  for (int r = 0; r < size(); ++r) {
    const Counts sent = of(r).sent.first(std::size_t(rank()));
    const std::int64_t n = call.received[std::size_t(r)];
    copy_bytes(part(of(r).from, std::accumulate(sent.begin(), sent.end(), std::int64_t(0)), n), part(call.to, at, n));
    at += n;
  }
}

// Calls f(rank, part) in the order of ranks.
template <class F>
void each_part(const Tensor& all, Counts counts, const F& f) {
  std::int64_t at = 0;
  for (int r = 0; r < int(counts.size()); ++r) {
    f(r, part(all, at, counts[std::size_t(r)]));
    at += counts[std::size_t(r)];
  }
}

void ThreadCommunicator::begin_exchange(Stream& stream, const Call& call) {
  require_host_memory(stream, "threads");
  if (stream.device() == Device::null) return;
  each_part(call.from, call.sent, [&](int r, const Tensor& x) {
    if (r != rank()) require(call, team_->post(rank(), r, x));
  });
}

void ThreadCommunicator::await_exchange(const Call& call, const BegunExchange& begun) {
  Tensor own;
  each_part(call.from, call.sent, [&](int r, const Tensor& x) { own = r == rank() ? x : own; });
  each_part(call.to, call.received, [&](int r, const Tensor& x) {
    if (r == rank()) copy_bytes(own, x);
    else require(call, team_->take(r, rank(), x));
  });
  for (int r = 0; r < size(); ++r)
    if (r != rank()) require(call, team_->taken(rank(), r, begun.sends[std::size_t(r)]));
}

void ThreadCommunicator::compute(const Call& call) {
  switch (call.kind) {
    case Collective::all_reduce:
    case Collective::reduce_scatter: return reduce(call);
    case Collective::all_gather:
      for (int r = 0; r < size(); ++r) copy_bytes(of(r).from, part(call.to, r * call.from.count(), call.from.count()));
      return;
    case Collective::all_to_all: {
      if (call.uneven()) return exchange_uneven(call);
      const std::int64_t n = call.to.count() / size();
      for (int r = 0; r < size(); ++r) copy_bytes(part(of(r).from, rank() * n, n), part(call.to, r * n, n));
      return;
    }
    case Collective::broadcast: return copy_bytes(of(call.peer).from, call.to);
    default: return;
  }
}

std::unique_ptr<Communicator> ThreadCommunicator::split(int color, int key) {
  struct Wish {
    int color, key, rank;
  };
  const Wish own{color, key, rank()};
  const Call call{};
  require(call, team_->meet(rank(), &own));
  std::vector<Wish> group;
  for (int r = 0; r < size(); ++r)
    if (const Wish& w = *static_cast<const Wish*>(team_->note(r)); w.color == color) group.push_back(w);
  std::sort(group.begin(), group.end(), [](const Wish& a, const Wish& b) { return std::pair(a.key, a.rank) < std::pair(b.key, b.rank); });
  const auto place = std::find_if(group.begin(), group.end(), [&](const Wish& w) { return w.rank == rank(); });
  team_->part(rank());
  std::shared_ptr<Team> team;
  if (place == group.begin()) team = team_->subset(int(group.size()));
  require(call, team_->meet(rank(), &team));
  if (!team) team = *static_cast<const std::shared_ptr<Team>*>(team_->note(group.front().rank));
  team_->part(rank());
  auto made = std::make_unique<ThreadCommunicator>(std::move(team), int(place - group.begin()));
  made->set_step(step());
  return made;
}

// The errors of ranks: the first that no other rank caused.
struct Outcome {
  std::mutex mutex;
  std::exception_ptr first, first_own;

  void add(bool caused_by_other) {
    const std::lock_guard lock(mutex);
    if (!first) first = std::current_exception();
    if (!caused_by_other && !first_own) first_own = std::current_exception();
  }
  void rethrow() const {
    if (first) std::rethrow_exception(first_own ? first_own : first);
  }
};

void run_rank(const std::shared_ptr<Team>& team, int rank, int threads, const std::function<void(Communicator&)>& work, Outcome& outcome) {
  cpu::set_threads(threads);
  try {
    ThreadCommunicator communicator(team, rank);
    work(communicator);
    team->leave(rank);
  } catch (const CommError& e) {
    outcome.add(true);
    team->fail(rank, format("has failed: {}", e.what()));
  } catch (const std::exception& e) {
    outcome.add(false);
    team->fail(rank, format("has failed: {}", e.what()));
  }
}

}  // namespace

void run_on_threads(const ThreadRanks& o, const std::function<void(Communicator&)>& work) {
  if (o.ranks < 1 || o.ranks > 1024) throw ConfigError(format("{} ranks cannot be threads of one process; choose 1 to 1024", o.ranks));
  if (!(o.limit_seconds > 0)) throw ConfigError(format("ranks cannot wait {} s for each other; choose more than 0", o.limit_seconds));
  const auto team = std::make_shared<Team>(o.ranks, o.limit_seconds);
  const int threads = std::max(1, cpu::threads() / o.ranks);
  Outcome outcome;
  std::vector<std::jthread> ranks;
  try {
    for (int r = 0; r < o.ranks; ++r) ranks.emplace_back([&, r] { run_rank(team, r, threads, work, outcome); });
  } catch (const std::system_error& e) {
    team->fail(int(ranks.size()), "could not be started");
    ranks.clear();
    throw DeviceError(
        format("the system refuses a thread for each of {} ranks ({}): choose fewer, or raise the limit of processes (ulimit -u)", o.ranks,
               e.what()));
  }
  ranks.clear();
  outcome.rethrow();
}

}  // namespace octet::comm
