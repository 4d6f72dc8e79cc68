#include "octet/comm/nccl/nccl.hpp"

#if defined(OCTET_HAS_CUDA) && __has_include(<nccl.h>)

#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "octet/base/clock.hpp"
#include "octet/base/log.hpp"
#include "octet/comm/combine.hpp"
#include "octet/comm/nccl/library.hpp"
#include "octet/comm/peer/peer_calls.hpp"
#include "octet/tensor/cuda/device.hpp"
#include "octet/tensor/cuda/waiter.hpp"

namespace octet::comm {

namespace {

std::string text_of(ncclResult_t result, ncclComm_t comm) {
  const char* const more = nccl().last_error(comm);
  return format("NCCL: {}{}{}", nccl().text(result), more != nullptr && *more != 0 ? ": " : "", more != nullptr ? more : "");
}

ncclDataType_t type_of(DType t) {
  switch (t) {
    case DType::f32: return ncclFloat32;
    case DType::bf16: return ncclBfloat16;
    case DType::f64: return ncclFloat64;
    case DType::i32: return ncclInt32;
    default: return ncclInt64;
  }
}
ncclRedOp_t operation(Reduction r) { return r == Reduction::sum ? ncclSum : ncclMax; }

// Calls return at once: a rank that waits for a lost one can end its communicator.
ncclConfig_t not_blocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

// Between two questions: a wait that is short stays awake.
void pause(double waited_seconds) {
  if (waited_seconds > 1e-3) std::this_thread::sleep_for(std::chrono::microseconds(20));
  else std::this_thread::yield();
}

constexpr double notice_seconds = 1;  // in which the library may tell of a lost rank itself, and heartbeats name it

bool has_lost(const std::shared_ptr<Heartbeats>& heartbeats, double waited) {
  return heartbeats != nullptr && waited > notice_seconds && heartbeats->lost().has_value();
}

// The result of a call under way, or ncclInProgress after the limit or where a rank is lost.
ncclResult_t settle(ncclComm_t comm, double limit_seconds, const std::shared_ptr<Heartbeats>& heartbeats) {
  const double start = monotonic_seconds();
  for (;;) {
    ncclResult_t state = ncclInProgress;
    if (const ncclResult_t asked = nccl().state(comm, &state); asked != ncclSuccess) return asked;
    const double waited = monotonic_seconds() - start;
    if (state != ncclInProgress || waited > limit_seconds || has_lost(heartbeats, waited)) return state;
    pause(waited);
  }
}

class NcclCommunicator;
// A communicator and those split off it: when a rank is lost, queued work of all of them waits for it.
using Family = std::vector<NcclCommunicator*>;

class NcclCommunicator final : public Communicator, public cuda::Waiter {
 public:
  NcclCommunicator(ncclComm_t comm, int rank, int size, const NcclOptions& options, std::shared_ptr<Heartbeats> heartbeats,
                   std::shared_ptr<Family> family)
      : Communicator(rank, size),
        comm_(comm),
        options_(options),
        limit_seconds_(options.limit_seconds),
        heartbeats_(std::move(heartbeats)),
        family_(std::move(family)),
        has_boxes_(options.peer_memory && size > 1 && size <= most_combined) {
    family_->push_back(this);
  }
  ~NcclCommunicator() override {
    if (waits_) cuda::set_waiter(nullptr);
    std::erase(*family_, this);
    boxes_.clear();
    for (const auto& [send, end] : begun_) cuda::end_event(end);
    if (comm_ == nullptr) return;
    if (std::uncaught_exceptions() > 0) nccl().abort(comm_);  // ending in order would wait for queued work of all ranks
    else nccl().destroy(comm_);
  }
  void finish(Stream& stream) override { finish(stream, last_); }
  /// Errors of the library come before those of the queue, whose kernels wait for the lost rank.
  void until(const std::function<bool()>& done) override { until(last_, done); }
  /// From now on this thread waits for the GPU no longer than for a rank.
  void end_long_waits() { cuda::set_waiter(this), waits_ = true; }
  using Communicator::split;
  std::unique_ptr<Communicator> split(int color, int key) override;

 private:
  void run(Stream&, const Call&, const Call* second) override;
  void run_parts(Stream&, const Call&, const UseParts&) override;
  void run_part(Stream&, const Call&, const UsePart&) override;
  void await_send(const Call&, const BegunSend&) override;
  // Their memory is freed once the device has ended them, so they wait for no box.
  void withdraw_sends() override {
    for (auto& [number, boxes] : boxes_)
      if (!begun_.empty()) boxes->abandon();
  }
  Mailboxes* boxes_for(Stream&, const Call&);
  Mailboxes* boxes_of(Stream&);
  std::vector<std::byte> gathered(Stream&, std::span<const std::byte> own);
  void called(const Call&);
  void run_by_boxes(Mailboxes&, Stream&, const Call&, const Call* second);
  void begin_group(Stream&) override;
  void end_group(Stream&) override;
  ncclResult_t start(Stream&, const Call&, const Call* second);
  ncclResult_t start_all_to_all(Stream&, const Call&);
  void start_barrier(Stream&, const Call&);
  void finish(Stream&, const Call&);
  void until(const Call&, const std::function<bool()>& done);
  void require(const Call&, ncclResult_t);
  [[noreturn]] void lose(const Call&, const std::string& what);
  void begin_abort();
  std::optional<Heartbeats::Absent> absent() const;

  ncclComm_t comm_;
  NcclOptions options_;
  double limit_seconds_;
  std::shared_ptr<Heartbeats> heartbeats_;  // or null
  std::shared_ptr<Family> family_;
  bool waits_ = false;  // for the GPU, in place of CUDA
  Call last_;
  std::jthread aborting_;
  bool has_boxes_;                                             // unless a rank has no access to another's memory
  std::map<int, std::unique_ptr<Mailboxes>> boxes_;            // of each queue that has needed them, by Stream::number()
  std::map<std::pair<int, std::int64_t>, cuda::Event> begun_;  // the ends of begun sends, by rank and number
};

// The library's abort ends queued kernels, then waits until recorded graphs with its collectives are destroyed. The owner of
// these continues meanwhile.
void NcclCommunicator::begin_abort() {
  for (auto& [number, boxes] : boxes_) boxes->abandon();
  if (comm_ == nullptr) return;
  aborting_ = std::jthread([comm = std::exchange(comm_, nullptr)] { nccl().abort(comm); });
}

void NcclCommunicator::lose(const Call& call, const std::string& what) {
  const std::optional<Heartbeats::Absent> who = absent();
  for (NcclCommunicator* c : *family_) c->begin_abort();
  if (!who) throw error(call, name_of(call.peer), what);
  CommError e = error(call, who->rank, format("{}: {}", who->text, what));
  e.others_tell = name_of(rank()) != 0 && who->rank != 0;
  throw e;
}

// The library may notice a lost rank before its heartbeats end.
std::optional<Heartbeats::Absent> NcclCommunicator::absent() const {
  if (heartbeats_ == nullptr) return std::nullopt;
  for (const double start = monotonic_seconds(); !heartbeats_->lost() && monotonic_seconds() - start < notice_seconds;) pause(1);
  return heartbeats_->late(limit_seconds_ / 2);
}

void NcclCommunicator::require(const Call& call, ncclResult_t result) {
  if (result == ncclInProgress) result = settle(comm_, limit_seconds_, heartbeats_);
  if (result == ncclInProgress) lose(call, format("not all ranks have come within {} s", limit_seconds_));
  if (result != ncclSuccess) lose(call, text_of(result, comm_));
}

ncclResult_t NcclCommunicator::start_all_to_all(Stream& stream, const Call& call) {
  const std::size_t equal = call.to.bytes() / std::size_t(size()), value = size_of(call.to.dtype);
  const auto bytes_of = [&](Counts counts, int r) { return counts.empty() ? equal : std::size_t(counts[std::size_t(r)]) * value; };
  const std::uint8_t* from = call.from.u8();
  std::uint8_t* to = call.to.u8();
  nccl().begin_group();
  for (int r = 0; r < size(); ++r) {
    const std::size_t out = bytes_of(call.sent, r), in = bytes_of(call.received, r);
    if (out > 0) nccl().send(from, out, ncclUint8, r, comm_, stream.queue());
    if (in > 0) nccl().receive(to, in, ncclUint8, r, comm_, stream.queue());
    from += out, to += in;
  }
  return nccl().end_group();
}

ncclResult_t NcclCommunicator::start(Stream& stream, const Call& call, const Call* second) {
  const Tensor &from = call.from, &to = call.to;
  const cuda::Queue queue = stream.queue();
  const std::size_t count = std::size_t(to.count());
  switch (call.kind) {
    case Collective::all_reduce:
      return nccl().all_reduce(from.data, to.data, count, type_of(to.dtype), operation(call.reduction), comm_, queue);
    case Collective::reduce_scatter:
      return nccl().reduce_scatter(from.data, to.data, count, type_of(to.dtype), operation(call.reduction), comm_, queue);
    case Collective::all_gather: return nccl().all_gather(from.data, to.data, from.bytes(), ncclUint8, comm_, queue);
    case Collective::broadcast: return nccl().broadcast(from.data, to.data, to.bytes(), ncclUint8, call.peer, comm_, queue);
    case Collective::all_to_all: return start_all_to_all(stream, call);
    case Collective::receive: return nccl().receive(to.data, to.bytes(), ncclUint8, call.peer, comm_, queue);
    default: break;
  }
  nccl().begin_group();
  nccl().send(from.data, from.bytes(), ncclUint8, call.peer, comm_, queue);
  if (second != nullptr) nccl().receive(second->to.data, second->to.bytes(), ncclUint8, second->peer, comm_, queue);
  return nccl().end_group();
}

void NcclCommunicator::start_barrier(Stream& stream, const Call& call) {
  const Scope scope(stream);
  const Tensor one = stream.zeros({1}, DType::i32, Lifetime::scratch, Category::workspace);
  if (stream.device() == Device::null) return;
  require(call, nccl().all_reduce(one.data, one.data, 1, ncclInt32, ncclSum, comm_, stream.queue()));
  finish(stream, call);
}

void NcclCommunicator::called(const Call& call) {
  if (comm_ == nullptr) throw error(call, -1, "NCCL has failed before");
  last_ = call, last_.sent = last_.received = {};  // which are the caller's
  if (heartbeats_ != nullptr) heartbeats_->called();
}

void NcclCommunicator::run(Stream& stream, const Call& call, const Call* second) {
  check(stream.device() != Device::cpu, "the NCCL communicator exchanges tensors of a GPU, not of the host");
  if (comm_ == nullptr) throw error(call, -1, "NCCL has failed before");
  if (call.kind == Collective::barrier) return start_barrier(stream, call);
  if (stream.device() == Device::null) return;
  called(call);
  if (Mailboxes* const boxes = boxes_for(stream, call)) return run_by_boxes(*boxes, stream, call, second);
  if (call.whole().count() > 0 || second != nullptr) require(call, start(stream, call, second));
}

void NcclCommunicator::run_by_boxes(Mailboxes& boxes, Stream& stream, const Call& call, const Call* second) {
  if (!call.begins) return peer::run(boxes, stream.queue(), call, second);
  peer::begin_send(boxes, stream.queue(), call.from, call.peer);
  begun_[{call.peer, sends_to(call.peer)}] = boxes.end_of_puts();
}

void NcclCommunicator::run_parts(Stream& stream, const Call& call, const UseParts& use) {
  Mailboxes* const boxes = stream.device() == Device::cuda ? boxes_for(stream, call) : nullptr;
  if (boxes == nullptr) return Communicator::run_parts(stream, call, use);
  called(call);
  peer::all_to_all(*boxes, stream.queue(), call.from, use);
}

void NcclCommunicator::run_part(Stream& stream, const Call& call, const UsePart& use) {
  Mailboxes* const boxes = stream.device() == Device::cuda ? boxes_for(stream, call) : nullptr;
  if (boxes == nullptr) return Communicator::run_part(stream, call, use);
  called(call);
  peer::all_gather(*boxes, stream.queue(), call.from, use);
}

void NcclCommunicator::await_send(const Call&, const BegunSend& begun) {
  const auto at = begun_.find({begun.to, begun.number});
  if (at == begun_.end()) return;
  cuda::hold(begun.stream->queue(), at->second);
  cuda::end_event(at->second);
  begun_.erase(at);
}

// All ranks make the same calls on queues of the same numbers, so they connect together. Recorded work cannot wait for that.
Mailboxes* NcclCommunicator::boxes_of(Stream& stream) {
  if (!has_boxes_) return nullptr;
  const auto at = boxes_.find(stream.number());
  if (at != boxes_.end()) return at->second.get();
  if (cuda::is_recording(stream.queue())) return nullptr;
  std::string why;
  auto made = Mailboxes::connect(
      rank(), size(), [&](std::span<const std::byte> own) { return gathered(stream, own); }, why);
  has_boxes_ = made != nullptr;
  if (!has_boxes_ && rank() == 0)
    log::info("{} ranks exchange large tensors through NCCL, not through peer memory: {}", size(),
              why.empty() ? "a rank has no access to another's memory" : why);
  return has_boxes_ ? (boxes_[stream.number()] = std::move(made)).get() : nullptr;
}

Mailboxes* NcclCommunicator::boxes_for(Stream& stream, const Call& call) { return peer::carries(call) ? boxes_of(stream) : nullptr; }

std::vector<std::byte> NcclCommunicator::gathered(Stream& stream, std::span<const std::byte> own) {
  const Scope scope(stream);
  const auto n = std::int64_t(own.size());
  const Tensor one = stream.empty({n}, DType::u8), all = stream.empty({size() * n}, DType::u8);
  upload(stream, own.data(), one);
  require(last_, nccl().all_gather(one.data, all.data, own.size(), ncclUint8, comm_, stream.queue()));
  finish(stream, last_);
  std::vector<std::byte> out(all.bytes());
  download(stream, all, out.data());
  return out;
}

// The calls that connect ranks have results only after the group.
void NcclCommunicator::begin_group(Stream& stream) {
  if (stream.device() != Device::cuda || comm_ == nullptr) return;
  boxes_of(stream);
  nccl().begin_group();
}

// Calls of a group begin here.
void NcclCommunicator::end_group(Stream& stream) {
  if (stream.device() == Device::cuda && comm_ != nullptr) require(last_, nccl().end_group());
}

void NcclCommunicator::finish(Stream& stream, const Call& call) {
  if (stream.device() == Device::cuda) until(call, [&] { return cuda::is_done(stream.queue()); });
}

void NcclCommunicator::until(const Call& call, const std::function<bool()>& done) {
  if (comm_ == nullptr) throw error(call, -1, "NCCL has failed before");
  const double start = monotonic_seconds();
  for (;;) {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = nccl().state(comm_, &state);
    if (asked != ncclSuccess || (state != ncclSuccess && state != ncclInProgress))
      lose(call, text_of(asked != ncclSuccess ? asked : state, comm_));
    try {
      if (done()) return;
    } catch (const DeviceError& e) {
      lose(call, e.what());
    }
    const double waited = monotonic_seconds() - start;
    if (has_lost(heartbeats_, waited)) lose(call, "the queued work cannot end");
    if (waited > limit_seconds_) lose(call, format("the queued work has not ended within {} s: a rank is late or lost", limit_seconds_));
    pause(waited);
  }
}

std::unique_ptr<Communicator> NcclCommunicator::split(int color, int key) {
  ncclConfig_t config = not_blocking();
  ncclComm_t part = nullptr;
  require({}, nccl().split(comm_, color, key, &part, &config));
  // A thread of the library fills it in, maybe after the call and the parent report success.
  const std::atomic_ref<ncclComm_t> made_part(part);
  for (const double begin = monotonic_seconds(); made_part == nullptr;) {
    require({}, settle(comm_, limit_seconds_, heartbeats_));
    if (monotonic_seconds() - begin > limit_seconds_) lose({}, format("not all ranks have come within {} s", limit_seconds_));
    pause(monotonic_seconds() - begin);
  }
  require({}, settle(part, limit_seconds_, heartbeats_));
  int rank = 0, size = 0;
  require({}, nccl().rank(part, &rank)), require({}, nccl().size(part, &size));
  auto made = std::make_unique<NcclCommunicator>(part, rank, size, options_, heartbeats_, family_);
  made->set_step(step());
  return made;
}

}  // namespace

std::string make_nccl_id() {
  ncclUniqueId id;
  if (const ncclResult_t result = nccl().make_id(&id); result != ncclSuccess) throw DeviceError(text_of(result, nullptr));
  return {id.internal, sizeof id.internal};
}

std::unique_ptr<Communicator> connect_nccl(int rank, int size, const std::string& id, const NcclOptions& options,
                                           std::shared_ptr<Heartbeats> heartbeats) {
  const double limit_seconds = options.limit_seconds;
  ncclUniqueId bytes;
  check(id.size() == sizeof bytes.internal, "connect_nccl: an id has {} bytes, got {}", sizeof bytes.internal, id.size());
  std::memcpy(bytes.internal, id.data(), id.size());
  cuda::facts();  // throws where there is no GPU
  ncclConfig_t config = not_blocking();
  ncclComm_t comm = nullptr;
  ncclResult_t result = nccl().init(&comm, size, bytes, rank, &config);
  if (result == ncclInProgress || result == ncclSuccess) result = settle(comm, limit_seconds, heartbeats);
  if (result == ncclSuccess) {
    auto made = std::make_unique<NcclCommunicator>(comm, rank, size, options, std::move(heartbeats), std::make_shared<Family>());
    made->end_long_waits();
    return made;
  }
  const std::string what = result == ncclInProgress ? format("not all ranks have come within {} s", limit_seconds) : text_of(result, comm);
  if (comm != nullptr) nccl().abort(comm);
  throw CommError({}, rank, size, -1, -1, what);
}

}  // namespace octet::comm

#else

namespace octet::comm {
namespace {
[[noreturn]] void not_built() {
  throw DeviceError("this program was built without NCCL: GPUs of several ranks need the CUDA toolkit and nccl.h when Octet is built");
}
}  // namespace

std::string make_nccl_id() { not_built(); }
std::unique_ptr<Communicator> connect_nccl(int, int, const std::string&, const NcclOptions&, std::shared_ptr<Heartbeats>) { not_built(); }

}  // namespace octet::comm

#endif
