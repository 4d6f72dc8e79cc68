#include "octet/nn/parameters.hpp"

#include <bit>

#include "octet/numerics/philox.hpp"
#include "octet/numerics/rounding.hpp"
#include "octet/ops/accumulate/accumulate.hpp"
#include "octet/ops/normal/normal.hpp"

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
  allocate(
      stream, list_, Category::weights, [&](const Parameter& p) { return p.value_storage(storage.values); },
      [](Parameter& p, const Stored& s) { p.value = s; });
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

std::vector<Stored> Parameters::values() const {
  std::vector<Stored> out;
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
  const auto values = [&](float x) { return std::vector<float>(std::size_t(p.value.count()), x); };
  switch (p.init.kind) {
    case Init::Kind::zeros: return set_values(stream, p.value, values(0).data());
    case Init::Kind::ones: return set_values(stream, p.value, values(1).data());
    case Init::Kind::normal: break;
  }
  const std::uint64_t key = seed ^ hash_of(p.path.c_str());
  ops::fill_normal(stream, key, p.init.standard_deviation, p.value);
}

void Parameters::initialize(Stream& stream, std::uint64_t seed) {
  for (Parameter* p : list_) nn::initialize(stream, *p, seed);
}

namespace {

// Neighbours of a number differ by 1 in their bits. `largest`: the bits of the largest finite one.
template <class Bits>
void nudge_codes(Stream& stream, const Tensor& codes, std::uint64_t key, std::uint64_t twin, Bits largest) {
  constexpr Bits sign = Bits(Bits(1) << (8 * sizeof(Bits) - 1));
  std::vector<Bits> bits(std::size_t(codes.count()));
  download(stream, codes, bits.data());
  RandomWords random{};
  for (std::size_t e = 0; e < bits.size(); ++e) {
    if (e % 128 == 0) random = philox(key, e / 128, twin);
    const Bits size = bits[e] & Bits(~sign);
    if (size == 0) continue;
    const bool up = (random.w[e % 128 / 32] >> (e % 32) & 1) != 0 && size != largest;
    bits[e] = Bits(up ? bits[e] + 1 : bits[e] - 1);
  }
  upload(stream, bits.data(), codes);
}

}  // namespace

void nudge(Stream& stream, Parameter& p, std::uint64_t seed, int twin) {
  check(twin >= 1, "nudge: twins are numbered from 1, got {}", twin);
  const std::uint64_t key = seed ^ hash_of(p.path.c_str());
  const Tensor& codes = p.value.codes;
  switch (codes.dtype) {
    case DType::f32:
      nudge_codes<std::uint32_t>(stream, codes, key, std::uint64_t(twin), std::bit_cast<std::uint32_t>(0x1.fffffep127f));
      break;
    case DType::bf16: nudge_codes<std::uint16_t>(stream, codes, key, std::uint64_t(twin), to_bf16(bf16_max).bits); break;
    case DType::f16: nudge_codes<std::uint16_t>(stream, codes, key, std::uint64_t(twin), to_fp16(Fp16::max).bits); break;
    case DType::e4m3: nudge_codes<std::uint8_t>(stream, codes, key, std::uint64_t(twin), E4M3::max_code); break;
    default: unsupported_dtype("nudge", codes.dtype, {DType::f32, DType::bf16, DType::f16, DType::e4m3});
  }
  if (p.value.scales) set_tensor_maximum(stream, p.value);
  ++p.version;
}

void Parameters::nudge(Stream& stream, std::uint64_t seed, int twin) {
  for (Parameter* p : list_) nn::nudge(stream, *p, seed, twin);
}

void Parameters::visit_state(StateVisitor& visitor) {
  for (Parameter* p : list_) {
    visitor.state(p->path, p->value, Tiny::flush);
    if (visitor.restoring()) ++p->version;
  }
}

}  // namespace octet::nn
