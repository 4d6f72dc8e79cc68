#include "octet/nn/parameters.hpp"

#include <bit>

#include "octet/numerics/philox.hpp"
#include "octet/ops/accumulate/accumulate.hpp"
#include "octet/ops/normal/normal.hpp"
#include "octet/ops/stored/stored.hpp"

namespace octet::nn {
namespace {

std::int64_t padded(Shape shape, DType type) {
  return round_up(shape.count() * std::int64_t(size_of(type)), std::int64_t(Arena::alignment));
}
Shape scales_of(const Parameter& p, Storage s) { return scales_shape(s, p.shape.count()); }
std::int64_t padded(const Parameter& p, Storage s) {
  return padded(p.shape, code_type(s)) + (scales_of(p, s).count() > 0 ? padded(scales_of(p, s), scales_type(s)) : 0);
}

// Codes of one parameter at `at`, and its scales behind them.
Stored cut(std::byte* at, const Parameter& p, Storage s) {
  Stored out{.codes = {at, p.shape, code_type(s)}, .storage = s};
  if (const Shape scales = scales_of(p, s); scales.count() > 0) out.scales = {at + padded(p.shape, code_type(s)), scales, scales_type(s)};
  return out;
}

// Room for one variable of each parameter, each on its own 256 bytes; returns the whole as bytes.
template <class StorageOf, class Bind>
Tensor allocate(Stream& stream, const std::vector<Parameter*>& list, Category category, const StorageOf& storage_of, const Bind& bind) {
  std::int64_t bytes = 0;
  for (const Parameter* p : list) bytes += padded(*p, storage_of(*p));
  const Tensor all = stream.zeros({bytes}, DType::u8, Lifetime::run, category);
  std::byte* next = all.as<std::byte>();
  for (Parameter* p : list) bind(*p, cut(next, *p, storage_of(*p))), next += padded(*p, storage_of(*p));
  return all;
}

using Contents = Gradient::Contents;

// The first micro-batch stores. On a GPU each GEMM that stores would be one more form to choose an algorithm for and one more graph, for a
// pass over the gradients per step.
bool stores_first(const Stream& stream, const Parameter& p) {
  return p.gradient.coded() || (!stream.apart_from_host() && p.gradient.begins_with_product());
}

}  // namespace

void Parameters::bind(Stream& stream, bool gradients, const ParameterStorage& storage) {
  for (const Parameter* p : list_) count_ += p->shape.count();
  const Storage values = storage.values == DType::bf16 ? Storage::bf16 : Storage::f32;
  allocate(
      stream, list_, Category::weights, [&](const Parameter& p) { return p.role == ParameterRole::matrix ? values : Storage::f32; },
      [](Parameter& p, const Stored& s) { p.value = s.codes; });
  if (gradients) bind_gradients(stream, storage.gradients);
}

void Parameters::bind_gradients(Stream& stream, Storage products) {
  const bool coded = is_fp8(code_type(products));
  if (coded) draws_ = stream.zeros({2}, DType::i64, Lifetime::run, Category::gradients);
  // Backward fills gradients in the reverse order of the visit; a tied table, visited first, is complete last.
  const auto buffer_of = [&](Storage s) {
    std::vector<Parameter*> some;
    for (auto p = list_.rbegin(); p != list_.rend(); ++p)
      if ((*p)->gradient_storage(products) == s) some.push_back(*p);
    return allocate(
        stream, some, Category::gradients, [&](const Parameter&) { return s; },
        [&](Parameter& p, const Stored& g) { p.gradient.bind(g, draws_); });
  };
  gradient_buffers_ = {buffer_of(Storage::f32)};
  if (coded) buffer_of(products);
  else if (products != Storage::f32) gradient_buffers_.push_back(buffer_of(products));
  for (Parameter* p : list_) p->gradient.begin(stores_first(stream, *p) ? Contents::stale : Contents::zero);
}

void Parameters::clear_gradients(Stream& stream) {
  micro_batch_ = 0;
  const bool apart = stream.apart_from_host();
  if (apart)
    for (const Tensor& buffer : gradient_buffers_) clear(stream, buffer);
  for (Parameter* p : list_) {
    const bool stale = stores_first(stream, *p);
    if (!apart && !stale) clear(stream, p->gradient.stored().values());
    p->gradient.begin(stale ? Contents::stale : Contents::zero);
  }
}

void Parameters::begin_micro_batch(Stream& stream, const Tensor& updates) {
  if (draws_) {
    upload(stream, &micro_batch_, draws_.rows(ops::accumulate_part, 1));
    if (updates) copy(stream, updates, draws_.rows(ops::accumulate_update, 1));
  }
  ++micro_batch_;
  for (Parameter* p : list_) p->gradient.begin_micro_batch();
}

std::vector<Tensor> Parameters::values() const {
  std::vector<Tensor> out;
  for (const Parameter* p : list_) out.push_back(p->value);
  return out;
}

std::vector<Stored> Parameters::gradients() const {
  std::vector<Stored> out;
  for (const Parameter* p : list_) out.push_back(p->gradient.stored());
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

std::vector<Stored> stored(const std::vector<Tensor>& tensors) {
  std::vector<Stored> out;
  for (const Tensor& t : tensors) out.push_back(Stored::plain(t));
  return out;
}

std::vector<float> flat_values(Stream& stream, const std::vector<Stored>& variables) {
  std::int64_t count = 0, at = 0;
  for (const Stored& s : variables) count += s.count();
  std::vector<float> out(std::size_t(count), 0.0f);
  for (const Stored& s : variables) {
    const Scope scope(stream);
    const bool coded = is_fp8(s.codes.dtype);
    const Tensor values = coded ? stream.empty(s.shape(), DType::f32) : s.values();
    if (coded) ops::decode_stored(stream, s, values);
    get_values(stream, values, out.data() + at), at += s.count();
  }
  return out;
}

std::vector<float> flat_values(Stream& stream, const std::vector<Tensor>& tensors) { return flat_values(stream, stored(tensors)); }

}  // namespace octet::nn
