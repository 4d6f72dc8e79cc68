#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>

#include "octet/comm/call_listener.hpp"
#include "octet/comm/call_log.hpp"
#include "octet/comm/comm_error.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::comm {

/// A send that was begun, by its number among all sends to that rank. Without one: `to` is negative.
struct BegunSend {
  Tensor x;
  int to = -1;
  std::int64_t number = 0;
  Stream* stream = nullptr;  // of the send
};

/// An all_to_all() of uneven parts that was begun.
struct BegunExchange {
  Tensor from, to;
  std::vector<std::int64_t> sent, received;
  std::vector<std::int64_t> sends = {};  // by rank: the number of its part among all sends to that rank
  Stream* stream = nullptr;              // null: it is done
  double begun = 0;                      // monotonic_seconds()
};

/// Ranks that exchange tensors. All ranks call the same collectives in the same order, each with tensors of equal size and dtype.
///
/// - Tensors are flat: shapes matter only by their count. Callers own the memory. Workspace comes from the stream's scratch.
/// - A call is work of the stream. On a CPU it is done when the function returns. On a GPU it is queued: call finish() before the host
/// reads.
/// - Tensors live on the stream's device. On the null device a call is counted and nothing else.
/// - Sums on a CPU are added in the order of ranks: f32 and bf16 in FP32, bf16 then rounded once to nearest even, f64 in FP64. The same
/// bits
///   on every CPU backend and at any timing. On a GPU the library chooses the order.
/// - Failures are CommError, within the backend's time limit. Wrong arguments are ContractError before anything is sent.
class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// x[i] = reduction over ranks of x[i]. f32, bf16, f64, i32 or i64.
  void all_reduce(Stream&, const Tensor& x, Reduction);
  /// to[i] = reduction over ranks of from[rank() * n + i], where n is to's count. from: size() * n values. `to` may be that part of `from`.
  void reduce_scatter(Stream&, const Tensor& from, const Tensor& to, Reduction);
  /// to[r * n + i] = from[i] of rank r, where n is from's count. Any dtype. `from` may be the own part of `to`.
  void all_gather(Stream&, const Tensor& from, const Tensor& to);
  /// to[r * n + i] = from[rank() * n + i] of rank r, where n is a size()-th of either count. Any dtype; the two do not overlap.
  void all_to_all(Stream&, const Tensor& from, const Tensor& to);
  /// The same of uneven parts: the first sent[0] values of `from` go to rank 0, the next sent[1] to rank 1, and so on; `to` gets
  /// received[0] values of rank 0 first. The host knows the counts: received[r] is sent[rank()] of rank r. The sums of counts are those of
  /// `from` and `to`, and may be 0. Stream::work() has the call without its bytes, since these depend on data; traffic() has both.
  void all_to_all(Stream&, const Tensor& from, Counts sent, const Tensor& to, Counts received);
  /// The same in two parts, as begin_send(): between them the tensors are left alone, and parts may travel. Exchanges are finished in the
  /// order in which they were begun. On a GPU it is the stream's work at once, so computation beside it is in another stream, and
  /// finish_all_to_all() does nothing.
  BegunExchange begin_all_to_all(Stream&, const Tensor& from, Counts sent, const Tensor& to, Counts received);
  void finish_all_to_all(const BegunExchange&);
  /// use(begin, parts), in pieces that together are the part for this rank: parts[r] is values [begin, begin + n) of from[rank() * count +
  /// i] of rank r, and is read until use() returns, by work of the stream. Pieces but the last are multiples of 2^18 values. The parts are
  /// where they have arrived: in workspace, or in memory of the backend.
  using UseParts = std::function<void(std::int64_t begin, std::span<const Tensor> parts)>;
  void all_to_all(Stream&, const Tensor& from, const UseParts& use);
  /// The same of all_gather(): use(r, begin, part) of each piece of `from` of each other rank r.
  using UsePart = std::function<void(int rank, std::int64_t begin, const Tensor& part)>;
  void all_gather(Stream&, const Tensor& from, const UsePart& use);
  /// x = x of rank `root`. Any dtype.
  void broadcast(Stream&, const Tensor& x, int root);
  /// One tensor to, or from, another rank. A send may wait for its receive, so two ranks that send to each other call exchange().
  void send(Stream&, const Tensor& x, int to);
  void receive(Stream&, const Tensor& x, int from);
  /// A send in two parts: between them x is not changed, and begin_send() returns at once. On a CPU finish_send() waits for the receive,
  /// and ranks may begin sends to each other before they receive. Logs have each part as a call, the second one without bytes.
  /// On a GPU work of the stream after finish_send() begins when x may change. Between GPUs without peer memory the send is in the order of
  /// the stream, so work after it waits for its receive, and finish_send() does nothing.
  /// Sends to one rank are received in the order in which they were begun.
  BegunSend begin_send(Stream&, const Tensor& x, int to);
  void finish_send(const BegunSend&);
  /// Before memory of sends and exchanges that were not finished is freed, after an error: this rank sends nothing of it any more.
  virtual void withdraw_sends() {}
  /// A send and a receive at once; counted as one of each.
  void exchange(Stream&, const Tensor& out, int to, const Tensor& in, int from);
  /// Returns when all ranks have come, and on a GPU when their queued work is done.
  void barrier(Stream&);

  /// f() makes calls that do not depend on each other's results: NCCL joins them to one kernel. No barrier() among them.
  template <class Calls>
  void together(Stream& stream, const Calls& f) {
    begin_group(stream);
    f();
    end_group(stream);
  }

  /// Returns when the queued work is done, within the time limit, which wait(Stream&) does not have. Nothing to do on a CPU.
  virtual void finish(Stream&) {}
  /// Ranks with one color form a communicator each, in the order of (key, rank). All ranks call it.
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;
  /// The same where the caller knows how many ranks have its color. Throws ContractError if there are others.
  virtual std::unique_ptr<Communicator> split(int color, int key, int size);

  /// The calls of a part of all ranks also enter last_calls() and seconds() of `all`, reach its listener and have its step. Errors name
  /// ranks by their numbers there: members[i] is rank i here. `all` outlives this.
  void report_to(Communicator& all, std::vector<int> members);

  /// Of the calls that the host has made. Stream::work() also counts those of a replayed part of a step.
  const Traffic& traffic(Collective c) const { return traffic_[std::size_t(c)]; }
  Traffic traffic() const;
  /// The last calls, in their order: at most CallLog::most.
  const CallLog& last_calls() const { return last_calls_; }
  /// Seconds that this rank has spent in its calls: on a GPU, where calls are queued, only in finish() and barrier().
  double seconds() const { return seconds_; }
  /// Sees every later call until it is replaced; null: none. It outlives its time here.
  void set_listener(CallListener* listener) { listener_ = listener; }
  /// The step that errors name.
  void set_step(std::int64_t step) { step_ = step; }
  std::int64_t step() const { return all_ != nullptr ? all_->step() : step_; }

 protected:
  Communicator(int rank, int size);
  /// Carries out a checked call. `second` is the receive of an exchange, else null.
  virtual void run(Stream&, const Call&, const Call* second) = 0;
  /// Returns when the begun send is received, or makes its stream wait.
  virtual void await_send(const Call&, const BegunSend&) {}
  /// Begins an exchange of uneven parts, or carries it out.
  virtual void begin_exchange(Stream& stream, const Call& call) { run(stream, call, nullptr); }
  virtual void await_exchange(const Call&, const BegunExchange&) {}
  /// Carries out an all_to_all() in pieces; the backend's own way, if it has a shorter one than through workspace.
  virtual void run_parts(Stream&, const Call&, const UseParts& use);
  virtual void run_part(Stream&, const Call&, const UsePart& use);
  /// Sends to a rank so far, without those of the null device.
  std::int64_t sends_to(int rank) const { return sends_[std::size_t(rank)]; }
  virtual void begin_group(Stream&) {}
  virtual void end_group(Stream&) {}
  /// The error of this rank about a peer, by its name_of(); -1: unknown.
  CommError error(const Call& call, int peer, const std::string& what) const;
  /// The number of one of these ranks in errors: that among all ranks, where this is a part that reports to them. -1 stays.
  int name_of(int rank) const { return rank < 0 || all_ == nullptr ? rank : all_->name_of(members_[std::size_t(rank)]); }
  bool reports() const { return all_ != nullptr; }

 private:
  void start(Stream&, const Call&, const Call* second = nullptr);
  template <class Run>
  void start_by(Stream&, const Call&, const Call* second, const Run& run);
  Call uneven_call(const Tensor& from, Counts sent, const Tensor& to, Counts received) const;
  void were_under_way(const Call&, std::int64_t sent, double begin, double end);
  Call send_call(const Tensor& x, int to, const char* who) const;
  void count(Stream&, const Call&);
  void begins(const Call&, std::int64_t sent, double begin);
  void ended(const Call&, std::int64_t sent, double begin, double end);

  int rank_, size_;
  Communicator* all_ = nullptr;
  std::vector<int> members_;  // of `all_`
  std::int64_t step_ = -1;
  std::array<Traffic, collectives> traffic_{};
  std::vector<std::int64_t> sends_;  // to each rank
  CallLog last_calls_;
  CallListener* listener_ = nullptr;
  double seconds_ = 0;
};

/// Backends of the host's memory call it first: throws ContractError for a stream of a GPU.
void require_host_memory(const Stream&, std::string_view backend);

}  // namespace octet::comm
