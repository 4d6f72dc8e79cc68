#include "octet/nn/host_values.hpp"

#include <algorithm>
#include <cmath>

#include "octet/ops/stored/stored.hpp"
#include "octet/tensor/parameter.hpp"
#include "octet/tensor/stored_memory.hpp"

namespace octet::nn {
namespace {

// Floats of the host as a tensor; encode_stored() only reads it.
Tensor tensor_of(const float* host, const Shape& shape) { return {const_cast<float*>(host), shape, DType::f32}; }

// Memory of a stream on the CPU for another variable of this shape and storage.
Stored alike(Stream& host, const Stored& s) { return empty_stored(host, s.shape(), s.storage); }

}  // namespace

void set_values(Stream& stream, const Stored& to, const float* host, Tiny tiny) {
  if (stream.device() == Device::null) return;
  if (!to.scales) return octet::set_values(stream, to.values(), host);
  Stream on_host(Device::cpu);
  const Stored made = alike(on_host, to);
  ops::encode_stored(on_host, tensor_of(host, to.shape()), made, tiny);
  upload(stream, made.codes.data, to.codes), upload(stream, made.scales.data, to.scales);
}

// With a scale per tensor all values are encoded in the host's memory, and the slice takes its codes.
void set_values(Stream& stream, const StoredSlice& slice, const float* whole, Tiny tiny) {
  const Stored& to = slice.stored;
  if (stream.device() == Device::null) return;
  if (slice.is_whole() || !scales_tensor(to.storage)) return set_values(stream, to, whole + slice.first, tiny);
  Stream host(Device::cpu);
  const Stored all = empty_stored(host, {slice.whole.count()}, to.storage);
  set_values(host, all, whole, tiny);
  const Stored own = all.part(slice.first, to.count());
  upload(stream, own.codes.data, to.codes), upload(stream, own.scales.data, to.scales);
}

void get_values(Stream& stream, const Stored& from, float* host) {
  if (stream.device() == Device::null) return;
  if (!from.scales) return octet::get_values(stream, from.values(), host);
  Stream on_host(Device::cpu);
  const Stored copy = alike(on_host, from);
  download(stream, from.codes, copy.codes.data), download(stream, from.scales, copy.scales.data);
  ops::decode_stored(on_host, copy, tensor_of(host, from.shape()));
}

void set_tensor_maximum(Stream& stream, const Stored& variable) {
  if (stream.device() == Device::null) return;
  std::vector<float> values(std::size_t(variable.count()));
  get_values(stream, variable, values.data());
  float amax = 0;
  for (const float x : values) amax = std::max(amax, std::fabs(x));
  upload(stream, &amax, variable.scales.rows(1, 1));
}

std::vector<float> flat_values(Stream& stream, const std::vector<Stored>& variables) {
  std::int64_t count = 0, at = 0;
  for (const Stored& v : variables) count += v.count();
  std::vector<float> out(std::size_t(count), 0.0f);
  for (const Stored& v : variables) get_values(stream, v, out.data() + at), at += v.count();
  return out;
}

std::vector<float> flat_values(Stream& stream, const std::vector<Tensor>& tensors) {
  std::vector<Stored> variables;
  for (const Tensor& t : tensors) variables.push_back(Stored::plain(t));
  return flat_values(stream, variables);
}

}  // namespace octet::nn
