#include "octet/tensor/stream.hpp"

#include <cstring>

#include "octet/tensor/cpu/neighbour.hpp"
#include "octet/tensor/cpu/threads.hpp"
#include "octet/tensor/cuda/device.hpp"
#include "octet/tensor/cuda/side_queue.hpp"

namespace octet {
namespace {

constexpr int blocks_a_multiprocessor = 8;

Target completed(Device device, Target target) {
  if (device == Device::cuda)
    target.device = Device::cuda, target.multiprocessors = cuda::facts().multiprocessors, target.generation = cuda::facts().major;
  return target;
}

}  // namespace

Stream::Stream(Device device, Target target)
    : own_arena_(std::make_unique<Arena>(device)), arena_(own_arena_.get()), target_(completed(device, target)) {
  if (device == Device::cpu) cpu::require_threads(), cpu::be_a_good_neighbour();
  if (device == Device::cuda) queue_ = cuda::make_queue();
}

Stream::Stream(Stream& main) : main_(main.main_), arena_(main.arena_), scratch_slot_(++main_->sides_), target_(main.target_) {
  if (device() == Device::cuda) queue_ = cuda::make_side_queue(scratch_slot_);
}

Stream::~Stream() {
  if (queue_ != nullptr) cuda::end_queue(queue_);
}

int Stream::workers() const { return target_.device == Device::cuda ? blocks_a_multiprocessor * target_.multiprocessors : cpu::threads(); }

Tensor Stream::zeros(Shape shape, DType dtype, Region region, Category category) {
  const Tensor t = empty(shape, dtype, region, category);
  clear(*this, t);
  return t;
}

void copy(Stream& stream, const Tensor& from, const Tensor& to) {
  check(from.shape == to.shape && from.dtype == to.dtype, "copy: {} {} does not fit {} {}", from.shape, from.dtype, to.shape, to.dtype);
  stream.count({.ops = 1, .bytes = 2.0 * double(from.bytes())});
  if (from.data == to.data || from.bytes() == 0) return;
  if (stream.device() == Device::cpu) std::memcpy(to.data, from.data, from.bytes());
  if (stream.device() == Device::cuda) cuda::copy(stream.queue(), from.data, to.data, from.bytes());
}

void clear(Stream& stream, const Tensor& t) {
  stream.count({.ops = 1, .bytes = double(t.bytes())});
  if (t.bytes() == 0) return;
  if (stream.device() == Device::cpu) std::memset(t.data, 0, t.bytes());
  if (stream.device() == Device::cuda) cuda::clear(stream.queue(), t.data, t.bytes());
}

void upload(Stream& stream, const void* host, const Tensor& to) {
  if (to.bytes() == 0) return;
  if (stream.device() == Device::cpu) std::memcpy(to.data, host, to.bytes());
  if (stream.device() == Device::cuda) stream.staging().upload(stream.queue(), host, to.data, to.bytes());
}

void download(Stream& stream, const Tensor& from, void* host) {
  if (from.bytes() == 0) return;
  if (stream.device() == Device::cpu) std::memcpy(host, from.data, from.bytes());
  if (stream.device() == Device::cuda) stream.staging().download(stream.queue(), from.data, host, from.bytes());
}

void wait(Stream& stream) {
  if (stream.device() == Device::cuda) cuda::wait(stream.queue());
}

HostCopy::HostCopy(Stream& stream, const Tensor& t) : tensor_(t) {
  if (stream.device() == Device::cpu) return;
  bytes_ = std::make_unique<std::byte[]>(t.bytes());
  tensor_.data = bytes_.get();
  download(stream, t, bytes_.get());
}

}  // namespace octet
