#include "octet/nn/parameters.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "octet/nn/weight.hpp"
#include "octet/numerics/philox.hpp"
#include "octet/numerics/rounding.hpp"
#include "octet/ops/accumulate/accumulate.hpp"
#include "octet/ops/normal/normal.hpp"
#include "octet/ops/quantize/slice.hpp"
#include "octet/tensor/stored_memory.hpp"

namespace octet::nn {
namespace {

// One variable of all buckets of a storage: codes in one piece, which is returned, and scales by blocks. The bucket's view of each is
// variable_of(bucket).
template <class VariableOf>
Tensor allocate(Stream& stream, std::span<Bucket* const> buckets, Storage storage, Category category, const VariableOf& variable_of) {
  std::int64_t count = 0, begin = 0;
  for (const Bucket* b : buckets) count += b->count;
  Stored all{.codes = stream.zeros({count}, code_type(storage), Lifetime::run, category), .storage = storage};
  if (scales_blocks(storage)) all.scales = stream.zeros(scales_shape(storage, count), scales_type(storage), Lifetime::run, category);
  for (Bucket* b : buckets) {
    variable_of(*b) = all.part(begin, b->count);
    begin += b->count;
  }
  return all.codes;
}

template <class StorageOf>
std::vector<Storage> storages_of(const std::vector<Bucket>& buckets, const StorageOf& storage_of) {
  std::vector<Storage> out;
  for (const Bucket& b : buckets)
    if (const Storage s = std::invoke(storage_of, b); std::find(out.begin(), out.end(), s) == out.end()) out.push_back(s);
  return out;
}

// The part of a variable that belongs to a parameter, with its own scales where they are per tensor.
Stored bound(Stream& stream, const Bucket& b, std::size_t i, const Stored& variable, Category category) {
  Stored out = b.cut(variable, i);
  if (scales_tensor(out.storage)) out.scales = stream.zeros({2}, DType::f32, Lifetime::run, category);
  return out;
}

// The cut of a parameter that another of so many members counts.
Cut copy_of(const Parameter& p, int members) {
  Cut out = p.cut ? p.cut : Cut::copied(p.whole(), 1, false);
  out.alone = 0, out.copies *= members, out.first_copy = false;
  return out;
}

using Contents = Gradient::Contents;

// The first micro-batch stores. On a GPU each GEMM that stores would be one more form to choose an algorithm for and one more graph, for a
// pass over the gradients per step.
bool stores_first(const Stream& stream, const Parameter& p) {
  return p.gradient.coded() || (!stream.apart_from_host() && p.gradient.begins_with_product());
}
Contents first_contents(const Stream& stream, const Parameter& p) {
  return p.gradient.shares_storage() ? Contents::foreign : stores_first(stream, p) ? Contents::stale : Contents::zero;
}

}  // namespace

void Parameters::Collect::parameter(Parameter& p) {
  if (!adapters) list.push_back(&p), contexts.push_back({.block = now, .experts = &p == stack});
}

void Parameters::Collect::adapter(Parameter& p) {
  if (!std::exchange(adapters, true)) list.clear(), contexts.clear();
  list.push_back(&p), contexts.push_back({.block = now, .experts = &p == stack});
}

// Of a block's matrix with one use, whose codes can be made of slices and are all that is read.
void Parameters::Collect::weight(Weight& w) {
  const auto at = std::find(list.begin(), list.end(), &w.parameter());
  if (!codes || now < 0 || at == list.end() || (*at)->gradient.uses() != 1 || w.forward_reads_values()) return;
  if (ops::can_quantize_slices(w.spec(scaling::recomputing), (*at)->shape)) contexts[std::size_t(at - list.begin())].coded = &w;
}

void Parameters::bind(Stream& stream, bool gradients) {
  for (const Parameter* p : list_) count_ += p->shape.count();
  for (Bucket& b : buckets_) b.in_turn = b.shard.shards(Sharded::weights) && b.block >= 0;
  bind_copies_in_turn(stream);
  bind_whole_copies(stream);
  for (Bucket& b : buckets_) {
    if (b.codes) bind_codes(b);
    else
      for (std::size_t i = 0; i < b.parameters.size(); ++i) b.parameters[i]->value = bound(stream, b, i, b.value, Category::weights);
  }
  bind_masters(stream);
  if (gradients) bind_gradients(stream);
  bind_slices();
}

void Parameters::bind_whole_copies(Stream& stream) {
  for (Bucket* b : those_of(&Bucket::in_turn, false))
    if (!b->coded.empty()) b->codes = stream.zeros({b->count}, DType::u8, Lifetime::run, Category::weights);
  const auto read = [](const Bucket& b) { return b.shard.shards(Sharded::masters) ? b.copies : b.values; };
  for (const Storage s : storages_of(buckets_, read)) {
    std::vector<Bucket*> whole;
    for (Bucket& b : buckets_)
      if (read(b) == s && !b.in_turn && !b.codes) whole.push_back(&b);
    allocate(stream, whole, s, Category::weights, [](Bucket& b) -> Stored& { return b.value; });
  }
  for (Bucket* b : those_of(&Bucket::in_turn, false)) {
    const IndexRange own = b->shard.own_masters(b->count);
    b->copies_part = b->all_copies().rows(own.first, own.count);
  }
}

// One buffer for the blocks of each parity: while a block is used, the next one can be gathered.
void Parameters::bind_copies_in_turn(Stream& stream) {
  const auto zeros = [&](std::int64_t n, DType d) { return stream.zeros({n}, d, Lifetime::run, Category::weights); };
  const auto type_of = [](const Bucket& b) { return b.coded.empty() ? code_type(b.copies) : DType::u8; };
  std::vector<std::int64_t> bytes;  // of a block
  for (Bucket* b : those_of(&Bucket::in_turn, true)) {
    b->copies_part = zeros(b->shard.own_masters(b->count).count, type_of(*b));
    bytes.resize(std::max(bytes.size(), std::size_t(b->block) + 1));
    bytes[std::size_t(b->block)] += b->count * std::int64_t(size_of(type_of(*b)));
  }
  if (bytes.empty()) return;
  std::int64_t most[2] = {0, 0};
  for (std::size_t i = 0; i < bytes.size(); ++i) most[i % 2] = std::max(most[i % 2], bytes[i]);
  const Tensor memory[2] = {zeros(most[0], DType::u8), zeros(most[1], DType::u8)};
  std::vector<std::int64_t> used(bytes.size(), 0);
  for (Bucket* b : those_of(&Bucket::in_turn, true)) {
    std::int64_t& at = used[std::size_t(b->block)];
    const Tensor copies{memory[b->block % 2].u8() + at, {b->count}, type_of(*b)};
    at += std::int64_t(copies.bytes());
    if (b->coded.empty()) b->value = {.codes = copies, .storage = b->copies};
    else b->codes = copies;
  }
}

// Descales are bound by the owner of the scales.
void Parameters::bind_codes(Bucket& b) {
  for (std::size_t i = 0; i < b.parameters.size(); ++i) {
    Parameter& p = *b.parameters[i];
    const ops::QuantizeSpec spec = b.coded[i]->spec(scaling::recomputing);
    p.value = {};
    p.codes = {
        .codes = {b.codes.u8() + b.first[i], p.shape, spec.format}, .block = spec.rows, .power_of_two = spec.rule != ScaleRule::quotient};
  }
}

std::vector<Bucket*> Parameters::sharded_buckets() {
  std::vector<Bucket*> out;
  for (Bucket& b : buckets_)
    if (b.shard.shards(Sharded::masters)) out.push_back(&b);
  return out;
}

void Parameters::bind_masters(Stream& stream) {
  for (Bucket* const divided : sharded_buckets()) {
    Bucket& b = *divided;
    const std::int64_t n = b.shard.own_masters(b.count).count;
    const auto zeros = [&](Shape s, DType d) { return stream.zeros(s, d, Lifetime::run, Category::weights); };
    if (b.master_is_copy()) b.master = {.codes = b.copies_part, .storage = b.values};
    else b.master = {.codes = zeros({n}, code_type(b.values)), .storage = b.values};
    if (scales_tensor(b.values)) b.master.scales = zeros({std::int64_t(b.parameters.size()), 2}, DType::f32);
  }
}

void Parameters::bind_slices() {
  slices_.resize(list_.size());
  copies_.clear();
  for (const Bucket& b : buckets_)
    for (std::size_t i = 0; i < b.parameters.size(); ++i) {
      ParameterSlice& slice = slices_[std::size_t(std::find(list_.begin(), list_.end(), b.parameters[i]) - list_.begin())];
      slice = slice_of(b, i);
      if (shards_.copies() && !b.experts) slice.copy = &copies_.emplace_back(copy_of(*b.parameters[i], shards_.members));
    }
}

std::vector<Tensor> Parameters::master_scalars() const {
  std::vector<Tensor> out;
  for (const Bucket& b : buckets_)
    if (b.master.scales) out.push_back(b.master.scales);
  return out;
}

void Parameters::set_values(Stream& stream, std::size_t i, const float* host) {
  const bool has_copy = shard().shards(Sharded::masters) && list_[i]->value;
  if (has_copy && !shard().shards(Sharded::weights)) nn::set_values(stream, list_[i]->value, host);
  nn::set_values(stream, slices_[i], host);
}

void Parameters::make_draws(Stream& stream) {
  if (!draws_) draws_ = stream.zeros({2}, DType::i64, Lifetime::run, Category::gradients);
}

void Parameters::bind_gradients(Stream& stream) {
  bind_shared_gradients(stream);
  for (const Storage s : storages_of(buckets_, &Bucket::gradients)) {
    std::vector<Bucket*> whole = those_of(&Bucket::gradients, s);
    std::erase_if(whole, [](const Bucket* b) { return b->sums_apart; });
    const Tensor buffer = allocate(stream, whole, s, Category::gradients, [](Bucket& b) -> Stored& { return b.gradient; });
    if (is_fp8(buffer.dtype)) make_draws(stream);
    else gradient_buffers_.push_back(buffer);
  }
  for (Bucket* b : those_of(&Bucket::sums_apart, true))
    for (Parameter* p : b->parameters) p->gradient.share_storage();
  for (Bucket* b : those_of(&Bucket::sums_apart, false)) {
    const IndexRange own = b->shard.own_masters(b->count);
    b->sums = b->gradient.part(own.first, own.count);
  }
  for (Bucket& b : buckets_)
    for (std::size_t i = 0; i < b.parameters.size(); ++i) {
      Parameter& p = *b.parameters[i];
      p.gradient.bind(bound(stream, b, i, b.gradient, Category::gradients), draws_);
      p.gradient.begin(first_contents(stream, p));
    }
}

// Two buffers in turn: while one bucket's values are exchanged, backward fills the other.
void Parameters::bind_shared_gradients(Stream& stream) {
  std::vector<Bucket*> shared[2];
  std::int64_t bytes[2] = {0, 0};
  int turn = 0;
  for (Bucket& b : buckets_) {
    const bool once = std::ranges::all_of(b.parameters, [](const Parameter* p) { return p->gradient.uses() == 1; });
    b.sums_apart = b.shard.shards(Sharded::gradients) && once && b.block >= 0;
  }
  for (Bucket* b : those_of(&Bucket::sums_apart, true)) {
    check(!scales_tensor(b->gradients), "gradients in {} cannot be divided: they have one scale per tensor", b->gradients);
    const Storage values =
        has_scales(b->gradients) ? Gradient::scratch_type(stream) == DType::bf16 ? Storage::bf16 : Storage::f32 : b->gradients;
    b->gradient.storage = values;
    bytes[turn] = std::max(bytes[turn], b->count * std::int64_t(size_of(code_type(values))));
    shared[turn].push_back(b), turn = 1 - turn;
    b->sums = zero_stored(stream, {b->shard.own_masters(b->count).count}, b->gradients, Lifetime::run, Category::gradients);
    if (has_scales(b->gradients)) make_draws(stream);
  }
  for (int slot = 0; slot < 2 && !shared[0].empty(); ++slot) {
    const Tensor memory = stream.zeros({bytes[slot]}, DType::u8, Lifetime::run, Category::gradients);
    for (Bucket* b : shared[slot]) b->gradient.codes = {memory.data, {b->count}, code_type(b->gradient.storage)};
  }
}

void Parameters::clear_gradients(Stream& stream) {
  const bool apart = stream.apart_from_host();
  if (apart)
    for (const Tensor& buffer : gradient_buffers_) clear(stream, buffer);
  for (Parameter* p : list_) {
    const Contents contents = first_contents(stream, *p);
    if (!apart && contents == Contents::zero) clear(stream, p->gradient.stored().values());
    p->gradient.begin(contents);
  }
}

void Parameters::number_draws(Stream& stream, const Tensor& updates, std::int64_t number) {
  if (!draws_) return;
  upload(stream, &number, draws_.rows(ops::accumulate_part, 1));
  if (updates) copy(stream, updates, draws_.rows(ops::accumulate_update, 1));
}

void Parameters::begin_micro_batch() {
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

void set_values(Stream& stream, const ParameterSlice& slice, const float* whole, Tiny tiny) {
  ++slice.parameter->version;
  set_values(stream, StoredSlice{slice.value, slice.parameter->shape, slice.first}, whole, tiny);
}

void initialize(Stream& stream, const ParameterSlice& slice, std::uint64_t seed) {
  const Parameter& p = *slice.parameter;
  ++slice.parameter->version;
  const auto values = [&](float x) { return std::vector<float>(std::size_t(p.shape.count()), x); };
  switch (p.init.kind) {
    case Init::Kind::zeros: return set_values(stream, slice, values(0).data());
    case Init::Kind::ones: return set_values(stream, slice, values(1).data());
    case Init::Kind::normal: break;
  }
  const StoredSlice values_here{slice.value, p.shape, slice.first, &p.cut};
  ops::fill_normal(stream, seed ^ hash_of(p.path.c_str()), p.init.standard_deviation, values_here);
}

void initialize(Stream& stream, Parameter& p, std::uint64_t seed) { initialize(stream, whole_slice(p), seed); }

void Parameters::initialize(Stream& stream, std::uint64_t seed) {
  for (const ParameterSlice& slice : slices_) nn::initialize(stream, slice, seed);
}

void Parameters::visit_state(StateVisitor& visitor) {
  for (const ParameterSlice& slice : slices_) {
    Parameter& p = *slice.parameter;
    visitor.state(p.path, {slice.value, p.shape, slice.first, &slice.cut()}, Tiny::flush);
    if (visitor.restoring()) ++p.version;
  }
}

}  // namespace octet::nn
