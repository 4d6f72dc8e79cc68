#include "octet/nn/parameters.hpp"

#include <bit>

#include "octet/numerics/philox.hpp"
#include "octet/ops/normal/normal.hpp"

namespace octet::nn {
namespace {

// Room for one tensor of each parameter, each on its own 256 bytes; returns the whole as bytes.
template <class DTypeOf, class Bind>
Tensor allocate(Stream& stream, const std::vector<Parameter*>& list, Category category, const DTypeOf& dtype_of, const Bind& bind) {
  const auto padded = [&](const Parameter& p) {
    return round_up(p.shape.count() * std::int64_t(size_of(dtype_of(p))), std::int64_t(Arena::alignment));
  };
  std::int64_t bytes = 0;
  for (const Parameter* p : list) bytes += padded(*p);
  const Tensor all = stream.zeros({bytes}, DType::u8, Lifetime::run, category);
  std::int64_t at = 0;
  for (Parameter* p : list) {
    bind(*p, Tensor{all.as<std::byte>() + at, p->shape, dtype_of(*p)});
    at += padded(*p);
  }
  return all;
}

using Contents = Gradient::Contents;

// On a GPU each GEMM that stores would be one more form to choose an algorithm for and one more graph, for a pass over the gradients per
// step.
bool stores_products(const Stream& stream) { return stream.target().device == Device::cpu; }

}  // namespace

void Parameters::bind(Stream& stream, bool gradients, const ParameterStorage& storage) {
  for (const Parameter* p : list_) count_ += p->shape.count();
  allocate(
      stream, list_, Category::weights, [&](const Parameter& p) { return p.value_type(storage.values); },
      [](Parameter& p, const Tensor& t) { p.value = t; });
  if (!gradients) return;
  // Backward fills gradients in the reverse order of the visit; a tied table, visited first, is complete last.
  const auto buffer_of = [&](DType dtype) {
    std::vector<Parameter*> some;
    for (auto p = list_.rbegin(); p != list_.rend(); ++p)
      if ((*p)->gradient_type(storage.gradients) == dtype) some.push_back(*p);
    return allocate(
        stream, some, Category::gradients, [&](const Parameter&) { return dtype; },
        [](Parameter& p, const Tensor& t) { p.gradient.bind(t); });
  };
  gradient_buffers_ = {buffer_of(DType::f32)};
  if (storage.gradients != DType::f32) gradient_buffers_.push_back(buffer_of(storage.gradients));
  const bool products_store = stores_products(stream);
  for (Parameter* p : list_) p->gradient.begin(products_store && p->gradient.begins_with_product() ? Contents::stale : Contents::zero);
}

void Parameters::clear_gradients(Stream& stream) {
  const bool products_store = stores_products(stream);
  if (!products_store)
    for (const Tensor& buffer : gradient_buffers_) clear(stream, buffer);
  for (Parameter* p : list_) {
    const bool stale = products_store && p->gradient.begins_with_product();
    if (products_store && !stale) clear(stream, p->gradient.data());
    p->gradient.begin(stale ? Contents::stale : Contents::zero);
  }
}

std::vector<Tensor> Parameters::values() const {
  std::vector<Tensor> out;
  for (const Parameter* p : list_) out.push_back(p->value);
  return out;
}

std::vector<Tensor> Parameters::gradients() const {
  std::vector<Tensor> out;
  for (const Parameter* p : list_) out.push_back(p->gradient.data());
  return out;
}

void initialize(Stream& stream, Parameter& p, std::uint64_t seed) {
  ++p.version;
  switch (p.init.kind) {
    case Init::Kind::zeros: return clear(stream, p.value);
    case Init::Kind::ones: return set_values(stream, p.value, std::vector<float>(std::size_t(p.value.count()), 1.0f).data());
    case Init::Kind::normal: return ops::fill_normal(stream, seed ^ hash_of(p.path.c_str()), p.init.standard_deviation, p.value);
  }
}

void Parameters::initialize(Stream& stream, std::uint64_t seed) {
  for (Parameter* p : list_) nn::initialize(stream, *p, seed);
}

void nudge(Stream& stream, Parameter& p, std::uint64_t seed, int twin) {
  check(twin >= 1, "nudge: twins are numbered from 1, got {}", twin);
  constexpr std::uint32_t magnitude = 0x7fffffff;
  const std::uint32_t unit = p.value.dtype == DType::bf16 ? 1u << 16 : 1u;  // of a BF16 value's last place, in the bits of a float
  const std::uint64_t key = seed ^ hash_of(p.path.c_str());
  std::vector<float> values(std::size_t(p.value.count()), 0.0f);
  get_values(stream, p.value, values.data());
  RandomWords random{};
  for (std::size_t e = 0; e < values.size(); ++e) {
    if (e % 128 == 0) random = philox(key, e / 128, std::uint64_t(twin));
    const auto bits = std::bit_cast<std::uint32_t>(values[e]);
    if ((bits & magnitude) == 0) continue;
    const bool up = random.w[e % 128 / 32] >> (e % 32) & 1;
    values[e] = std::bit_cast<float>(up ? bits + unit : bits - unit);
  }
  set_values(stream, p.value, values.data());
  ++p.version;
}

void Parameters::nudge(Stream& stream, std::uint64_t seed, int twin) {
  for (Parameter* p : list_) nn::nudge(stream, *p, seed, twin);
}

void Parameters::visit_state(StateVisitor& visitor) {
  for (Parameter* p : list_) {
    visitor.state(p->path, p->value);
    if (visitor.restoring()) ++p->version;
  }
}

std::vector<float> flat_values(Stream& stream, const std::vector<Tensor>& tensors) {
  std::int64_t count = 0, at = 0;
  for (const Tensor& t : tensors) count += t.count();
  std::vector<float> out(std::size_t(count), 0.0f);
  for (const Tensor& t : tensors) get_values(stream, t, out.data() + at), at += t.count();
  return out;
}

}  // namespace octet::nn
