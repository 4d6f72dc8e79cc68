#include "octet/comm/communicator.hpp"

#include <algorithm>
#include <numeric>

#include "octet/base/clock.hpp"

namespace octet::comm {
namespace {

bool can_reduce(DType t) { return t == DType::f32 || t == DType::bf16 || t == DType::f64 || t == DType::i32 || t == DType::i64; }

void check_reduced(const char* who, const Tensor& x) {
  check(can_reduce(x.dtype), "{}: wants f32, bf16, f64, i32 or i64, got {} {}", who, x.dtype, x.shape);
}
void check_parts(const char* who, const Tensor& whole, const Tensor& part, int size) {
  check(whole.dtype == part.dtype && whole.count() == size * part.count(), "{}: {} {} must be {} times {} {}, one part per rank", who,
        whole.dtype, whole.shape, size, part.dtype, part.shape);
}

}  // namespace

Communicator::Communicator(int rank, int size) : rank_(rank), size_(size) {
  check(size >= 1 && rank >= 0 && rank < size, "communicator: rank {} of {}", rank, size);
  sends_.assign(std::size_t(size), 0);
}

Traffic Communicator::traffic() const {
  Traffic sum;
  for (const Traffic& t : traffic_) sum = sum + t;
  return sum;
}

void Communicator::count(Stream& stream, const Call& c) {
  Traffic& t = traffic_[std::size_t(c.kind)];
  const std::int64_t bytes = bytes_sent(c, rank_, size_);
  t = t + Traffic{1, bytes};
  if (c.kind == Collective::send && stream.device() != Device::null) ++sends_[std::size_t(c.peer)];
  for (int r = 0; c.kind == Collective::all_to_all && c.begins && r < size_; ++r) sends_[std::size_t(r)] += r != rank_;
  stream.count({.collectives = 1, .sent_bytes = c.uneven() ? 0 : bytes});
}

void Communicator::start(Stream& stream, const Call& call, const Call* second) {
  start_by(stream, call, second, [&] { run(stream, call, second); });
}

template <class Run>
void Communicator::start_by(Stream& stream, const Call& call, const Call* second, const Run& run) {
  count(stream, call);
  if (second != nullptr) count(stream, *second);
  const double begin = monotonic_seconds();
  const std::int64_t sent = bytes_sent(call, rank_, size_);
  begins(call, sent, begin);
  run();
  ended(call, sent, begin, monotonic_seconds());
}

void Communicator::report_to(Communicator& all, std::vector<int> members) {
  check(int(members.size()) == size_ && members[std::size_t(rank_)] == all.rank(),
        "communicator: {} members for {} ranks, of which this is {}", members.size(), size_, rank_);
  all_ = &all, members_ = std::move(members);
}

CommError Communicator::error(const Call& call, int peer, const std::string& what) const {
  Call named = call;
  named.peer = name_of(call.peer);
  const Communicator* all = this;
  while (all->all_ != nullptr) all = all->all_;
  return {named, all->rank_, all->size_, step(), peer, what};
}

void Communicator::begins(const Call& call, std::int64_t sent, double begin) {
  last_calls_.begin(call, step(), sent, begin);
  if (all_ != nullptr) all_->begins(call, sent, begin);
}

void Communicator::ended(const Call& call, std::int64_t sent, double begin, double end) {
  last_calls_.end(end);
  seconds_ += end - begin;
  if (listener_ != nullptr) listener_->called(call, sent, begin, end);
  if (all_ != nullptr) all_->ended(call, sent, begin, end);
}

void Communicator::all_reduce(Stream& stream, const Tensor& x, Reduction reduction) {
  check_reduced("all_reduce", x);
  start(stream, {Collective::all_reduce, x, x, reduction});
}

void Communicator::reduce_scatter(Stream& stream, const Tensor& from, const Tensor& to, Reduction reduction) {
  check_reduced("reduce_scatter", from);
  check_parts("reduce_scatter", from, to, size_);
  start(stream, {Collective::reduce_scatter, from, to, reduction});
}

void Communicator::all_gather(Stream& stream, const Tensor& from, const Tensor& to) {
  check_parts("all_gather", to, from, size_);
  start(stream, {Collective::all_gather, from, to});
}

void Communicator::all_to_all(Stream& stream, const Tensor& from, const Tensor& to) {
  check(from.dtype == to.dtype && from.count() == to.count() && from.count() % size_ == 0,
        "all_to_all: {} {} and {} {} must be of one dtype and size, a multiple of {} ranks", from.dtype, from.shape, to.dtype, to.shape,
        size_);
  check(from.u8() + from.bytes() <= to.u8() || to.u8() + to.bytes() <= from.u8(), "all_to_all: the two tensors overlap");
  start(stream, {Collective::all_to_all, from, to});
}

Call Communicator::uneven_call(const Tensor& from, Counts sent, const Tensor& to, Counts received) const {
  const auto sum = [&](Counts counts) {
    check(int(counts.size()) == size_ && std::ranges::all_of(counts, [](std::int64_t n) { return n >= 0; }),
          "all_to_all: wants a count of at least 0 for each of {} ranks, got {} counts", size_, counts.size());
    return std::accumulate(counts.begin(), counts.end(), std::int64_t(0));
  };
  check(from.dtype == to.dtype && from.count() == sum(sent) && to.count() == sum(received),
        "all_to_all: {} {} and {} {} must be of one dtype, and have the {} and {} values of their counts", from.dtype, from.shape, to.dtype,
        to.shape, sum(sent), sum(received));
  return {.kind = Collective::all_to_all, .from = from, .to = to, .sent = sent, .received = received};
}

void Communicator::all_to_all(Stream& stream, const Tensor& from, Counts sent, const Tensor& to, Counts received) {
  start(stream, uneven_call(from, sent, to, received));
}

BegunExchange Communicator::begin_all_to_all(Stream& stream, const Tensor& from, Counts sent, const Tensor& to, Counts received) {
  Call call = uneven_call(from, sent, to, received);
  call.begins = true;
  BegunExchange out{from, to, {sent.begin(), sent.end()}, {received.begin(), received.end()}};
  out.begun = monotonic_seconds();
  start_by(stream, call, nullptr, [&] { begin_exchange(stream, call); });
  if (stream.device() != Device::null) out.stream = &stream, out.sends = sends_;
  return out;
}

void Communicator::finish_all_to_all(const BegunExchange& begun) {
  if (begun.stream == nullptr) return;
  const Call call = uneven_call(begun.from, begun.sent, begun.to, begun.received);
  const double begin = monotonic_seconds();
  begins(call, 0, begin);
  await_exchange(call, begun);
  const double end = monotonic_seconds();
  ended(call, 0, begin, end);
  were_under_way(call, bytes_sent(call, rank_, size_), begun.begun, end);
}

void Communicator::were_under_way(const Call& call, std::int64_t sent, double begin, double end) {
  if (listener_ != nullptr) listener_->under_way(call, sent, begin, end);
  if (all_ != nullptr) all_->were_under_way(call, sent, begin, end);
}

void Communicator::all_to_all(Stream& stream, const Tensor& from, const UseParts& use) {
  check(from.count() % size_ == 0, "all_to_all: {} {} is not a multiple of {} ranks", from.dtype, from.shape, size_);
  const Call call{Collective::all_to_all, from, from};
  start_by(stream, call, nullptr, [&] { run_parts(stream, call, use); });
}

void Communicator::run_parts(Stream& stream, const Call& call, const UseParts& use) {
  const Scope scope(stream);
  const std::int64_t n = call.from.count() / size_;
  const Tensor from = call.from.reshaped({call.from.count()});
  const Tensor to = size_ == 1 ? from : stream.empty(from.shape, from.dtype, Lifetime::scratch, Category::workspace);
  if (size_ > 1) run(stream, {Collective::all_to_all, from, to}, nullptr);
  std::vector<Tensor> parts;
  for (int r = 0; r < size_; ++r) parts.push_back(to.rows(r * n, n));
  if (n > 0) use(0, parts);
}

// Only the count of the received tensor enters counters and logs.
void Communicator::all_gather(Stream& stream, const Tensor& from, const UsePart& use) {
  const Call call{Collective::all_gather, from, {from.data, {from.count() * size_}, from.dtype}};
  start_by(stream, call, nullptr, [&] { run_part(stream, call, use); });
}

void Communicator::run_part(Stream& stream, const Call& call, const UsePart& use) {
  if (size_ == 1) return;
  const Scope scope(stream);
  const std::int64_t n = call.from.count();
  const Tensor to = stream.empty(call.to.shape, call.to.dtype, Lifetime::scratch, Category::workspace);
  run(stream, {Collective::all_gather, call.from, to}, nullptr);
  for (int r = 0; r < size_; ++r)
    if (r != rank_ && n > 0) use(r, 0, to.rows(r * n, n));
}

void Communicator::broadcast(Stream& stream, const Tensor& x, int root) {
  check(root >= 0 && root < size_, "broadcast: there is no rank {} of {}", root, size_);
  start(stream, {Collective::broadcast, x, x, Reduction::sum, root});
}

Call Communicator::send_call(const Tensor& x, int to, const char* who) const {
  check(to >= 0 && to < size_ && to != rank_, "{}: rank {} of {} cannot send to rank {}", who, rank_, size_, to);
  return {Collective::send, x, {}, Reduction::sum, to};
}

void Communicator::send(Stream& stream, const Tensor& x, int to) { start(stream, send_call(x, to, "send")); }

BegunSend Communicator::begin_send(Stream& stream, const Tensor& x, int to) {
  Call call = send_call(x, to, "begin_send");
  call.begins = true;
  start(stream, call);
  return stream.device() == Device::null ? BegunSend{} : BegunSend{x, to, sends_to(to), &stream};
}

void Communicator::finish_send(const BegunSend& begun) {
  if (begun.to < 0) return;
  const Call call = send_call(begun.x, begun.to, "finish_send");
  const double begin = monotonic_seconds();
  begins(call, 0, begin);
  await_send(call, begun);
  ended(call, 0, begin, monotonic_seconds());
}

void Communicator::receive(Stream& stream, const Tensor& x, int from) {
  check(from >= 0 && from < size_ && from != rank_, "receive: rank {} of {} cannot receive from rank {}", rank_, size_, from);
  start(stream, {Collective::receive, {}, x, Reduction::sum, from});
}

void Communicator::exchange(Stream& stream, const Tensor& out, int to, const Tensor& in, int from) {
  check(to >= 0 && to < size_ && from >= 0 && from < size_ && to != rank_ && from != rank_,
        "exchange: rank {} of {} cannot send to rank {} and receive from rank {}", rank_, size_, to, from);
  const Call second{Collective::receive, {}, in, Reduction::sum, from};
  start(stream, {Collective::send, out, {}, Reduction::sum, to}, &second);
}

std::unique_ptr<Communicator> Communicator::split(int color, int key, int size) {
  auto part = split(color, key);
  check(part->size() == size, "split: {} ranks have color {}, wanted {}", part->size(), color, size);
  return part;
}

void Communicator::barrier(Stream& stream) { start(stream, {Collective::barrier}); }

void require_host_memory(const Stream& stream, std::string_view backend) {
  check(stream.device() != Device::cuda, "the {} communicator exchanges tensors of the host; a GPU's need the NCCL communicator", backend);
}

}  // namespace octet::comm
