#pragma once

#include <string_view>

#include "octet/tensor/arena.hpp"
#include "octet/tensor/cuda/queue.hpp"
#include "octet/tensor/cuda/staging.hpp"
#include "octet/tensor/tensor.hpp"

namespace octet {

/// The target of a stream's ops, also on the null device: decides workspaces.
struct Target {
  DType gemm_compute = DType::f32;  // CPU: type into which GEMMs decode FP8: bf16 if the machine multiplies it faster
  Device device = Device::cpu;      // cpu or cuda
  int multiprocessors = 0;          // cuda: of the GPU
  int generation = 9;               // cuda: of the GPU, the major number of its compute capability: 9 Hopper, 10 Blackwell
  bool deterministic = false;  // cuda: the same bits in every run, at a cost in memory and time (attention's gradient, GEMM algorithms)
};

/// Work that ops have announced: the same counts on every device for one target, so a dry run gives a step's cost.
struct Work {
  std::int64_t ops = 0;
  double flops = 0;                              // of GEMMs and attention, 2 per multiply-add
  double gemm_flops = 0;                         // of GEMMs alone
  double bytes = 0;                              // read and written by all other ops, each tensor once
  double fp8_flops = 0;                          // of GEMMs with an 8-bit operand; a CPU decodes it first
  double emulated_flops = 0;                     // of these, on a GPU: of GEMMs for which it first decodes the codes
  std::int64_t collectives = 0, sent_bytes = 0;  // calls in which several devices exchange tensors, and bytes that this one sends in them

  friend Work operator+(const Work& a, const Work& b) {
    return {a.ops + b.ops,
            a.flops + b.flops,
            a.gemm_flops + b.gemm_flops,
            a.bytes + b.bytes,
            a.fp8_flops + b.fp8_flops,
            a.emulated_flops + b.emulated_flops,
            a.collectives + b.collectives,
            a.sent_bytes + b.sent_bytes};
  }
  friend Work operator-(const Work& a, const Work& b) { return a + -1 * b; }
  friend Work operator*(std::int64_t n, const Work& w) {
    const auto times = double(n);
    return {n * w.ops,           times * w.flops,          times * w.gemm_flops, times * w.bytes,
            times * w.fp8_flops, times * w.emulated_flops, n * w.collectives,    n * w.sent_bytes};
  }
};

/// Sees tensors as modules make them. Used to find the origin of a non-finite value; none is installed in a normal step.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void observe(std::string_view path, std::string_view what, const Tensor&) = 0;
};

/// An ordered queue of work on one device, with the arena that this work allocates from. Not thread-safe.
class Stream {
 public:
  explicit Stream(Device device, Target target = {});
  /// A side queue of `main`, which must outlive it. On a GPU its work runs beside main's, in the order that StreamEvent and wait_for() set
  /// (tensor/stream_event.hpp). It uses main's arena, in which its scratch is its own, and its counts are main's.
  explicit Stream(Stream& main);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device device() const { return arena_->device(); }
  const Target& target() const { return target_; }
  /// Parallel parts with separate workspaces: CPU threads, or blocks that a GPU runs at once.
  int workers() const;
  /// Whether the target device has separate memory.
  bool apart_from_host() const { return target_.device == Device::cuda; }
  /// The GPU's queue; null on other devices.
  cuda::Queue queue() const { return queue_; }
  /// Copies bytes between the host and the GPU.
  cuda::Staging& staging() { return staging_; }
  Arena& arena() { return *arena_; }
  const Arena& arena() const { return *arena_; }
  /// 0, or a side queue's number among those of its main one, in the order in which they were made.
  int number() const { return scratch_slot_; }
  /// Where this queue's allocations of a region are.
  Region own(Region region) const { return region.lifetime == Lifetime::scratch ? Region(Lifetime::scratch, scratch_slot_) : region; }

  /// Memory for a tensor, contents undefined.
  Tensor empty(Shape shape, DType dtype, Region region = Lifetime::scratch, Category category = Category::temporaries) {
    return {arena_->allocate(std::size_t(shape.count()) * size_of(dtype), own(region), category), shape, dtype};
  }
  /// The same, filled with zero bytes.
  Tensor zeros(Shape, DType, Region = Lifetime::scratch, Category = Category::temporaries);

  void count(const Work& w) { main_->work_ = main_->work_ + w; }
  const Work& work() const { return main_->work_; }

  /// Passes a tensor to the observer, if there is one.
  void observe(std::string_view path, std::string_view what, const Tensor& t) {
    if (main_->observer_ != nullptr) main_->observer_->observe(path, what, t);
  }
  void set_observer(Observer* o) { main_->observer_ = o; }
  bool observed() const { return main_->observer_ != nullptr; }

 private:
  Stream* main_ = this;  // of a side queue: the first one
  std::unique_ptr<Arena> own_arena_;
  Arena* arena_;
  int scratch_slot_ = 0;
  int sides_ = 0;  // made so far
  Target target_;
  cuda::Queue queue_ = nullptr;
  cuda::Staging staging_;
  Work work_;
  Observer* observer_ = nullptr;
};

/// Its destructor frees everything allocated in a region since its construction. A function that returns a tensor allocates it first, then
/// opens a scope for temporaries.
class Scope {
 public:
  explicit Scope(Stream& stream, Region region = Lifetime::scratch)
      : arena_(stream.arena()), region_(stream.own(region)), mark_(arena_.mark(region_)) {}
  ~Scope() { arena_.release(region_, mark_); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Arena& arena_;
  Region region_;
  Arena::Mark mark_;
};

/// Copies bytes between tensors of one shape and dtype; nothing on the null device.
void copy(Stream&, const Tensor& from, const Tensor& to);
/// Zero bytes.
void clear(Stream&, const Tensor&);

/// to.bytes() bytes from the host's memory, which may be reused at once; nothing on the null device.
void upload(Stream&, const void* host, const Tensor& to);
/// The other way, after all work before it is done; nothing on the null device.
void download(Stream&, const Tensor& from, void* host);
/// Returns when all work put into the stream is done.
void wait(Stream&);

/// A tensor's values where the host can read them: the tensor itself on the CPU, a copy of it from a GPU (waits for the stream's work).
class HostCopy {
 public:
  HostCopy(Stream&, const Tensor&);
  const Tensor& tensor() const { return tensor_; }
  template <class T>
  const T* as() const {
    return tensor_.as<T>();
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  Tensor tensor_;
};
/// One element of a tensor.
template <class T>
T read(Stream& stream, const Tensor& t, std::int64_t i = 0) {
  check(t.dtype == dtype_of<T> && i >= 0 && i < t.count(), "read: element {} of {} {}", i, t.dtype, t.shape);
  return *HostCopy(stream, Tensor{t.as<T>() + i, {1}, t.dtype}).as<T>();
}

}  // namespace octet
