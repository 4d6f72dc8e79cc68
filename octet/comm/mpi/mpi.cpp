#include "octet/comm/mpi/mpi.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "octet/comm/combine.hpp"
#include "octet/comm/mpi/file_size.hpp"
#include "octet/comm/mpi/session.hpp"
#include "octet/comm/mpi/workspace.hpp"
#include "octet/comm/rendezvous/launched_rank.hpp"

namespace octet::comm {
namespace {

Tensor part(const Tensor& x, std::int64_t begin, std::int64_t n) { return {x.u8() + std::size_t(begin) * size_of(x.dtype), {n}, x.dtype}; }

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(std::shared_ptr<MpiSession> session, MpiGroup* group)
      : Communicator(mpi_transport().rank(group), mpi_transport().size(group)), session_(std::move(session)), group_(group) {}
  ~MpiCommunicator() override {
    if (group_ != session_->world && !session_->lost) mpi_transport().free(group_);
  }
  using Communicator::split;
  std::unique_ptr<Communicator> split(int color, int key) override;
  void withdraw_sends() override;

 private:
  void run(Stream&, const Call&, const Call* second) override;
  void await_send(const Call&, const BegunSend&) override;
  void all_reduce(Stream&, const Call&);
  void reduce_scatter(Stream&, const Call&);
  void add(const Call&, const Tensor& parts, const Tensor& to) const;
  void transfer(const Call&, const Call* second);

  void exchange_parts(const Call&, const Tensor& from, const Tensor& to);
  void exchange_uneven(const Call&);
  std::vector<MpiRequest*> start_uneven(const Call&);
  void begin_exchange(Stream&, const Call&) override;
  void await_exchange(const Call&, const BegunExchange&) override;
  void gather_parts(const Call&, const void* from, const Tensor& to);

  /// Starts a transfer, by f(request), and completes it.
  template <class Start>
  void complete(const Call& call, Start start) {
    MpiRequest* request = nullptr;
    require(call, start(&request));
    complete(call, request);
  }
  void complete(const Call&, MpiRequest*);
  /// Starts a send that await_send() completes.
  template <class Start>
  void begin(const Call& call, Start start) {
    MpiRequest* request = nullptr;
    require(call, start(&request));
    begun_[{call.peer, sends_to(call.peer)}] = session_->progress->add(request);
  }
  void require(const Call&, int code);
  [[noreturn]] void lose(const Call&, const std::string& what);
  [[noreturn]] void lose_late(const Call&, double longest_pause);
  std::vector<int> missing(const Call&, const std::vector<int>& absent) const;

  std::shared_ptr<MpiSession> session_;
  MpiGroup* group_;
  std::map<std::pair<int, std::int64_t>, std::int64_t> begun_;  // sends under way, by receiver and number
  std::deque<std::vector<std::int64_t>> exchanges_;             // under way, in their order: numbers of their parts
};

bool is_of_two(const Call& call) { return call.kind == Collective::send || call.kind == Collective::receive; }

void MpiCommunicator::lose(const Call& call, const std::string& what) {
  session_->lose();
  throw error(call, is_of_two(call) ? name_of(call.peer) : -1, what);
}

// The ranks to blame among those that are absent: of the call's own ranks, or, where these wait, too, all of them.
std::vector<int> MpiCommunicator::missing(const Call& call, const std::vector<int>& absent) const {
  std::vector<int> here;
  for (int r = 0; r < size(); ++r)
    if ((!is_of_two(call) || r == call.peer) && std::ranges::find(absent, name_of(r)) != absent.end()) here.push_back(name_of(r));
  return here.empty() ? absent : here;
}

// Names the ranks that have not come, as far as they are known.
void MpiCommunicator::lose_late(const Call& call, double longest_pause) {
  session_->lose();
  const std::string within = format("within {} s", session_->limit_seconds);
  if (longest_pause > session_->limit_seconds / 2) {
    CommError e =
        error(call, name_of(rank()), format("this process did not run for {} s, and others have not waited", fixed(longest_pause, 1)));
    e.others_tell = size() > 1;
    throw e;
  }
  const bool known = group_ == session_->world || reports();  // the numbers of its ranks in the world
  const std::vector<int> absent = known ? session_->attendance->absent() : std::vector<int>(), blamed = missing(call, absent);
  if (blamed.empty() && is_of_two(call))
    throw error(call, name_of(call.peer), format("rank {} has not come {}", name_of(call.peer), within));
  if (blamed.empty()) throw error(call, -1, format("not all ranks have come {}", within));
  std::vector<std::string> names;
  for (const int r : blamed) names.push_back(format("{} on {}", r, printable(session_->hosts[std::size_t(r)])));
  CommError e =
      error(call, blamed.front(),
            format("rank{} {} {} not come {}", blamed.size() == 1 ? "" : "s", joined(names), blamed.size() == 1 ? "has" : "have", within));
  for (int r = 0; r < name_of(rank()); ++r) e.others_tell |= std::ranges::find(absent, r) == absent.end();
  throw e;
}

void MpiCommunicator::require(const Call& call, int code) {
  if (code != 0) lose(call, "MPI: " + mpi_text(code));
}

void MpiCommunicator::complete(const Call& call, MpiRequest* request) {
  const double limit = session_->limit_seconds;
  session_->attendance->begin();
  Waited waited;
  try {
    waited = wait_for(request, limit, [&](double seconds) { session_->attendance->wait(seconds > limit / 2); });
  } catch (const DeviceError& e) {
    lose(call, format("MPI: {}", e.what()));
  }
  if (!waited.done) lose_late(call, waited.longest_pause);
}

void MpiCommunicator::exchange_parts(const Call& call, const Tensor& from, const Tensor& to) {
  const std::size_t bytes = to.bytes() / std::size_t(size());
  complete(call, [&](MpiRequest** r) { return mpi_transport().all_to_all(group_, from.data, to.data, bytes, r); });
}

// One transfer per pair of ranks that exchange values. The own part is copied.
std::vector<MpiRequest*> MpiCommunicator::start_uneven(const Call& call) {
  const std::size_t value = size_of(call.from.dtype);
  std::vector<MpiRequest*> under_way;
  const auto each_part = [&](const Tensor& all, Counts counts, const auto& f) {
    std::uint8_t* at = all.u8();
    for (int r = 0; r < size(); ++r) {
      const std::size_t bytes = std::size_t(counts[std::size_t(r)]) * value;
      if (bytes > 0) f(r, at, bytes);
      at += bytes;
    }
  };
  const std::uint8_t* own = nullptr;
  const auto start = [&](const auto& transfer) {
    MpiRequest* request = nullptr;
    require(call, transfer(&request));
    under_way.push_back(request);
  };
  each_part(call.from, call.sent, [&](int r, std::uint8_t* at, std::size_t) { own = r == rank() ? at : own; });
  each_part(call.to, call.received, [&](int r, std::uint8_t* at, std::size_t bytes) {
    if (r == rank()) std::memcpy(at, own, bytes);
    else start([&](MpiRequest** request) { return mpi_transport().receive(group_, at, bytes, r, request); });
  });
  each_part(call.from, call.sent, [&](int r, std::uint8_t* at, std::size_t bytes) {
    if (r != rank()) start([&](MpiRequest** request) { return mpi_transport().send(group_, at, bytes, r, request); });
  });
  return under_way;
}

void MpiCommunicator::exchange_uneven(const Call& call) {
  for (MpiRequest* request : start_uneven(call)) complete(call, request);
}

void MpiCommunicator::begin_exchange(Stream& stream, const Call& call) {
  require_host_memory(stream, "MPI");
  if (session_->lost) throw error(call, -1, "MPI has failed before");
  if (stream.device() == Device::null) return;
  std::vector<std::int64_t>& parts = exchanges_.emplace_back();
  for (MpiRequest* request : start_uneven(call)) parts.push_back(session_->progress->add(request));
}

void MpiCommunicator::await_exchange(const Call& call, const BegunExchange&) {
  if (session_->lost) throw error(call, -1, "MPI has failed before");
  check(!exchanges_.empty(), "finish_all_to_all: rank {} has begun no exchange", rank());
  const std::vector<std::int64_t> parts = std::move(exchanges_.front());
  exchanges_.pop_front();
  for (const std::int64_t part : parts) {
    const auto [request, code] = session_->progress->take(part);
    require(call, code);
    if (request != nullptr) complete(call, request);
  }
}

void MpiCommunicator::gather_parts(const Call& call, const void* from, const Tensor& to) {
  const std::size_t bytes = to.bytes() / std::size_t(size());
  const void* const own = to.u8() + std::size_t(rank()) * bytes;
  complete(call, [&](MpiRequest** r) { return mpi_transport().all_gather(group_, from == own ? nullptr : from, to.data, bytes, r); });
}

// parts: [size, to's count].
void MpiCommunicator::add(const Call& call, const Tensor& parts, const Tensor& to) const {
  std::vector<const void*> in;
  for (int r = 0; r < size(); ++r) in.push_back(part(parts, r * to.count(), to.count()).data);
  combine(call.reduction, in, to);
}

void MpiCommunicator::reduce_scatter(Stream& stream, const Call& call) {
  const Scope scope(stream);
  const Tensor parts = mpi_workspace(stream, call, size()).parts;
  if (stream.device() == Device::null) return;
  exchange_parts(call, call.from, parts);
  add(call, parts, call.to);
}

void MpiCommunicator::all_reduce(Stream& stream, const Call& call) {
  const Tensor& x = call.to;
  const Scope scope(stream);
  const auto& [share, few, parts, padded] = mpi_workspace(stream, call, size());
  if (stream.device() == Device::null) return;
  if (few) {
    gather_parts(call, x.data, parts);
    return add(call, parts, x);
  }
  std::memcpy(padded.data, x.data, x.bytes());
  std::memset(padded.u8() + x.bytes(), 0, padded.bytes() - x.bytes());
  exchange_parts(call, padded, parts);
  const Tensor own = part(padded, rank() * share, share);
  add(call, parts, own);
  gather_parts(call, own.data, padded);
  std::memcpy(x.data, padded.data, x.bytes());
}

void MpiCommunicator::transfer(const Call& call, const Call* second) {
  const auto send = [&](MpiRequest** r) { return mpi_transport().send(group_, call.from.data, call.from.bytes(), call.peer, r); };
  const auto receive = [&](const Call& c, MpiRequest** r) { return mpi_transport().receive(group_, c.to.data, c.to.bytes(), c.peer, r); };
  if (call.kind == Collective::receive) return complete(call, [&](MpiRequest** r) { return receive(call, r); });
  if (call.begins) return begin(call, send);
  MpiRequest* incoming = nullptr;
  if (second != nullptr) require(*second, receive(*second, &incoming));
  complete(call, send);
  if (incoming != nullptr) complete(*second, incoming);
}

void MpiCommunicator::await_send(const Call& call, const BegunSend& send) {
  if (session_->lost) throw error(call, -1, "MPI has failed before");
  const auto begun = begun_.extract({call.peer, send.number});
  check(!begun.empty(), "finish_send: rank {} has not begun send {} to rank {}, or has finished it", rank(), send.number, call.peer);
  const auto [request, code] = session_->progress->take(begun.mapped());
  require(call, code);
  if (request != nullptr) complete(call, request);
}

// MPI cannot take a send back, and would read freed memory in its next call. So there is none.
void MpiCommunicator::withdraw_sends() {
  if (!begun_.empty() || !exchanges_.empty()) session_->lose();
  begun_.clear(), exchanges_.clear();
}

void MpiCommunicator::run(Stream& stream, const Call& call, const Call* second) {
  require_host_memory(stream, "MPI");
  if (session_->lost) throw error(call, -1, "MPI has failed before");
  if (call.kind == Collective::all_reduce) return all_reduce(stream, call);
  if (call.kind == Collective::reduce_scatter) return reduce_scatter(stream, call);
  if (stream.device() == Device::null) return;
  switch (call.kind) {
    case Collective::all_gather: return gather_parts(call, call.from.data, call.to);
    case Collective::all_to_all: return call.uneven() ? exchange_uneven(call) : exchange_parts(call, call.from, call.to);
    case Collective::broadcast:
      return complete(call, [&](MpiRequest** r) { return mpi_transport().broadcast(group_, call.to.data, call.to.bytes(), call.peer, r); });
    case Collective::barrier: return complete(call, [&](MpiRequest** r) { return mpi_transport().barrier(group_, r); });
    default: return transfer(call, second);
  }
}

std::unique_ptr<Communicator> MpiCommunicator::split(int color, int key) {
  MpiGroup* part = nullptr;
  const MpiDeadline watch(session_->limit_seconds, format("rank {} of {}: not all ranks have divided themselves", name_of(rank()), size()));
  require({}, mpi_transport().split(group_, color, key, &part));
  auto made = std::make_unique<MpiCommunicator>(session_, part);
  made->set_step(step());
  return made;
}

}  // namespace

std::unique_ptr<Communicator> connect_mpi(double limit_seconds) {
  if (!(limit_seconds > 0)) throw ConfigError(format("ranks cannot wait {} s for each other; choose more than 0", limit_seconds));
  const LaunchedRank launched = launched_rank_from_environment();
  require_mpi_start(launched, environment_variable);
  require_mpi_file_size();
  auto session = std::make_shared<MpiSession>(launched, limit_seconds);
  MpiGroup* const world = session->world;
  return std::make_unique<MpiCommunicator>(std::move(session), world);
}

}  // namespace octet::comm
