#include "octet/parallel/gradient_sums.hpp"

#include <algorithm>

#include "octet/numerics/philox.hpp"
#include "octet/ops/accumulate/accumulate.hpp"
#include "octet/ops/stored/stored.hpp"
#include "octet/ops/stored_sum/stored_sum.hpp"
#include "octet/tensor/stored_memory.hpp"

namespace octet::parallel {
namespace {

bool of_vectors(const nn::Bucket& b) { return b.parameters.front()->role == ParameterRole::vector; }

// The parameters' parts of a bucket's values.
std::vector<Tensor> tensors_of(const nn::Bucket& b, const Tensor& values) {
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < b.parameters.size(); ++i) out.push_back(b.cut(Stored::plain(values), i).codes);
  return out;
}

// The type in which a bucket's values travel or are encoded.
DType travelling_type(Wire wire, Storage stored) {
  if (wire == Wire::f32) return DType::f32;
  if (wire == Wire::bf16) return DType::bf16;
  return stored == Storage::bf16 ? DType::bf16 : DType::f32;
}

// One scale per tensor is converted tensor by tensor.
void load(Stream& stream, const nn::Bucket& b, const Tensor& values) {
  if (!scales_tensor(b.gradients)) return ops::stored_sum(stream, {.parts = b.gradient, .sum = Stored::plain(values)});
  const std::vector<Tensor> tensors = tensors_of(b, values);
  for (std::size_t i = 0; i < tensors.size(); ++i) ops::decode_stored(stream, b.parameters[i]->gradient.stored(), tensors[i]);
}
void store(Stream& stream, const nn::Bucket& b, const Tensor& values) {
  if (!scales_tensor(b.gradients)) return ops::stored_sum(stream, {.parts = Stored::plain(values), .sum = b.gradient});
  const std::vector<Tensor> tensors = tensors_of(b, values);
  for (std::size_t i = 0; i < tensors.size(); ++i) ops::encode_stored(stream, tensors[i], b.parameters[i]->gradient.stored());
}

// Of memory that buckets share in turn: what another one has left there would enter the scales of blocks.
void clear_padding(Stream& stream, const nn::Bucket& b) {
  for (std::size_t i = 0; i < b.parameters.size(); ++i) {
    const std::int64_t end = b.first[i] + b.parameters[i]->shape.count(), next = i + 1 < b.first.size() ? b.first[i + 1] : b.count;
    if (next > end) clear(stream, b.gradient.codes.rows(end, next - end));
  }
}

}  // namespace

// Complete sums, or those of the own masters, of all micro-batches at once.
class GradientSums::OfStep final : public BucketSum {
 public:
  using BucketSum::BucketSum;
  bool exchanges(int micro_batch, int micro_batches) const override { return micro_batch + 1 == micro_batches; }
  void exchange(GradientSums& all, Stream& stream) override { all.sum(stream, *this); }
  bool has_own_sums_only() const override { return shards_masters() && !shared && !scales_tensor(bucket->gradients); }
};

// Sums apart from the values of a micro-batch, whose memory other buckets use in turn.
class GradientSums::OfMicroBatches final : public BucketSum {
 public:
  using BucketSum::BucketSum;
  void begin_micro_batch() override { expect(); }
  bool exchanges(int, int) const override { return true; }
  void exchange(GradientSums& all, Stream& stream) override { all.sum_of_micro_batch(stream, *this); }
  // Its memory may hold values of another bucket that are still being exchanged.
  void hold(GradientSums& all, Stream& stream) override {
    if (Exchange& last = all.exchanges_of_[bucket->gradient.codes.data]; last.begun) last.end.wait(stream);
  }
  void exchanged(GradientSums& all, Stream& queue) override {
    Exchange& last = all.exchanges_of_[bucket->gradient.codes.data];
    last.begun = true, last.end.record(queue);
  }
  bool has_own_sums_only() const override { return true; }
};

bool sums_share_scale(const Parameter& p, const CommConfig& c, Storage gradients) {
  return p.role != ParameterRole::vector && has_shared_scale(wire_of(c.gradients, p.gradient_storage(gradients))) &&
         p.whole().count() >= SharedScaleSum::fewest_values;
}

GradientSums::GradientSums(Stream& stream, Stream* side, const Sharers& sharers, const SharedEnd& end, const nn::Parameters& parameters,
                           const CommConfig& config, CopiedGradients& copied)
    : parameters_(parameters), side_(side), copied_(copied) {
  for (const nn::Bucket& b : parameters.buckets()) {
    comm::Communicator& ranks = sharers.of(b);
    if (ranks.size() == 1) continue;
    const Wire wire = of_vectors(b) ? Wire::f32 : wire_of(config.gradients, b.gradients);
    for (Parameter* p : b.parameters) number_of_[&p->gradient] = bucket_sums_.size(), p->gradient.set_listener(this);
    if (b.sums_apart) bucket_sums_.push_back(std::make_unique<OfMicroBatches>(b, sharers, wire));
    else bucket_sums_.push_back(std::make_unique<OfStep>(b, sharers, wire));
    if (has_shared_scale(wire)) share_scales(stream, *bucket_sums_.back(), sharers, end, config);
  }
}

void GradientSums::share_scales(Stream& stream, BucketSum& part, const Sharers& sharers, const SharedEnd& end, const CommConfig& config) {
  const nn::Bucket& b = *part.bucket;
  const Parameter& front = *b.parameters.front();
  comm::Communicator& parts = sharers.parts_of(b);
  std::vector<SummedTensor> tensors;
  for (const Parameter* p : b.parameters) tensors.push_back({p->shape.count(), p->whole().count()});
  part.shared = std::make_unique<SharedScaleSum>(stream, part.ranks.size(), std::move(tensors), room_of(part.wire, config.mu_growth),
                                                 ScaleSharers{parts, &front == end.parameter ? end.stages : alone_});
  part.leads = part.ranks.rank() == 0 && parts.rank() == 0 && (!front.cut || front.cut.first_copy);
}

GradientSums::~GradientSums() {
  for (const auto& part : bucket_sums_)
    for (Parameter* p : part->bucket->parameters) p->gradient.set_listener(nullptr);
}

void GradientSums::begin_step(int micro_batches, bool exchanges) {
  micro_batches_ = micro_batches, exchanges_ = exchanges, exchanged_ = false;
  for (auto& [memory, exchange] : exchanges_of_) exchange.begun = false;
  for (const auto& part : bucket_sums_) part->expect();
}

void GradientSums::begin_micro_batch(int micro_batch) {
  micro_batch_ = micro_batch;
  for (const auto& part : bucket_sums_) part->begin_micro_batch();
}

void GradientSums::require_done() const {
  for (const auto& part : bucket_sums_)
    check(part->pending == 0, "{} passes have not completed gradients of {}'s bucket, so their sum over ranks is missing", part->pending,
          part->bucket->parameters.front()->path);
}

void GradientSums::begin(Stream& stream, const Gradient& gradient) { bucket_sums_[number_of_.at(&gradient)]->hold(*this, stream); }

void GradientSums::complete(Stream& stream, const Gradient& gradient) {
  BucketSum& part = *bucket_sums_[number_of_.at(&gradient)];
  if (!exchanges_ || !part.exchanges(micro_batch_, micro_batches_)) return;
  check(part.pending > 0, "a gradient of {}'s bucket was completed too often in a micro-batch", part.bucket->parameters.front()->path);
  if (--part.pending > 0) return;
  Stream& queue = side_ ? *side_ : stream;
  wait_for(queue, stream);
  copied_.sum(queue, *part.bucket);
  part.exchange(*this, queue);
  part.exchanged(*this, queue), exchanged_ = true;
}

void GradientSums::sum_other_copies(Stream& stream) {
  for (const nn::Bucket& b : parameters_.buckets())
    if (!number_of_.contains(&b.parameters.front()->gradient)) copied_.sum(stream, b);
}

// A recorded micro-batch cannot wait for a side queue that has none of its work.
void GradientSums::join(Stream& stream) {
  if (side_ && exchanged_) wait_for(stream, *side_);
  exchanged_ = false;
  for (auto& [memory, exchange] : exchanges_of_) exchange.begun = false;
}

void GradientSums::sum(Stream& stream, BucketSum& part) {
  const nn::Bucket& b = *part.bucket;
  if (part.wire == Wire::e4m3 && b.gradients == Storage::e4m3) {
    if (!part.shards_masters()) return EightBitSum(part.ranks).all_reduce(stream, b.gradient);
    EightBitSum(part.owners).reduce_scatter(stream, b.gradient, b.sums);
    return sum_copies(stream, part, b.sums);
  }
  const DType type = travelling_type(part.wire, b.gradients);
  if (b.gradient.codes.dtype == type) return sum_values(stream, part, b.gradient.codes);
  const Scope scope(stream);
  const Tensor values = stream.empty({b.count}, type, Lifetime::scratch, Category::workspace);
  load(stream, b, values);
  sum_values(stream, part, values);
  store(stream, b, values);
}

void GradientSums::sum_values(Stream& stream, BucketSum& part, const Tensor& values) {
  if (part.shared) return part.shared->all_reduce(stream, part.ranks, tensors_of(*part.bucket, values));
  // Scales per tensor need the sums of all of it.
  if (part.shards_masters() && !scales_tensor(part.bucket->gradients)) return sum_own_part(stream, part, values);
  if (part.wire == Wire::e4m3) return EightBitSum(part.ranks).all_reduce(stream, values);
  part.ranks.all_reduce(stream, values, comm::Reduction::sum);
}

void GradientSums::sum_own_part(Stream& stream, const BucketSum& part, const Tensor& values) {
  const Stored own = part.own_part(Stored::plain(values));
  if (part.wire == Wire::e4m3) EightBitSum(part.owners).reduce_scatter(stream, values, own);
  else part.owners.reduce_scatter(stream, values, own.codes, comm::Reduction::sum);
  sum_copies(stream, part, own);
}

// Sums of all groups, from those of each. Codes that travel as values are decoded and rounded to nearest again.
void GradientSums::sum_copies(Stream& stream, const BucketSum& part, const Stored& own) {
  if (part.copies.size() == 1) return;
  const bool coded = has_scales(own.storage);
  if (part.wire == Wire::e4m3 && coded) return EightBitSum(part.copies).all_reduce(stream, own);
  if (part.wire == Wire::e4m3) return EightBitSum(part.copies).all_reduce(stream, own.codes);
  if (!coded) return part.copies.all_reduce(stream, own.codes, comm::Reduction::sum);
  const Scope scope(stream);
  const Tensor values =
      stream.empty({own.count()}, travelling_type(part.wire, part.bucket->gradients), Lifetime::scratch, Category::workspace);
  ops::stored_sum(stream, {.parts = own, .sum = Stored::plain(values)});
  part.copies.all_reduce(stream, values, comm::Reduction::sum);
  ops::stored_sum(stream, {.parts = Stored::plain(values), .sum = own});
}

void GradientSums::BucketSum::expect() {
  pending = 0;
  for (const Parameter* p : bucket->parameters) pending += std::size_t(p->gradient.passes());
}

Stored GradientSums::BucketSum::own_part(const Stored& whole) const {
  const std::int64_t n = whole.count() / owners.size();
  return whole.part(owners.rank() * n, n);
}

void GradientSums::sum_of_micro_batch(Stream& stream, BucketSum& part) {
  add_micro_batch(stream, part);
  if (micro_batch_ + 1 == micro_batches_ && !part.shared) sum_copies(stream, part, part.bucket->sums);
}

// The values of one micro-batch, exchanged in FP32 sums of the own part.
void GradientSums::add_micro_batch(Stream& stream, BucketSum& part) {
  const nn::Bucket& b = *part.bucket;
  const Scope scope(stream);
  clear_padding(stream, b);
  Tensor values = b.gradient.codes;
  if (const DType type = travelling_type(part.wire, b.gradient.storage); type != values.dtype) {
    values = stream.empty({b.count}, type, Lifetime::scratch, Category::workspace);
    ops::stored_sum(stream, {.parts = b.gradient, .sum = Stored::plain(values)});
  }
  if (!has_scales(b.gradients)) return add_parts(stream, part, values, b.sums, micro_batch_ > 0);
  const Tensor sums = stream.empty({b.count / part.owners.size()}, DType::f32, Lifetime::scratch, Category::workspace);
  add_parts(stream, part, values, Stored::plain(sums), false);
  // Of this part, on every tensor rank: those of copied key heads round their equal sums alike.
  const std::uint64_t key = hash_of(b.parameters.front()->path.c_str()) ^ hash_of("part") ^ std::uint64_t(part.owners.rank());
  ops::accumulate(stream, {.x = sums, .sum = b.sums, .draws = parameters_.draws(), .key = key});
}

// sum = the sum over ranks of the own part, or that added to it: in FP32, rounded once where values travel as they are.
void GradientSums::add_parts(Stream& stream, BucketSum& part, const Tensor& values, const Stored& sum, bool adds) {
  if (part.wire == Wire::e4m3) return EightBitSum(part.owners).reduce_scatter(stream, values, sum, adds);
  if (part.shared) {
    part.shared->all_reduce(stream, part.ranks, tensors_of(*part.bucket, values));
    return ops::stored_sum(stream, {.parts = part.own_part(Stored::plain(values)), .sum = sum, .adds = adds});
  }
  std::vector<Stored> parts(std::size_t(part.owners.size()));
  part.owners.all_to_all(stream, values, [&](std::int64_t begin, std::span<const Tensor> arrived) {
    for (std::size_t r = 0; r < parts.size(); ++r) parts[r] = Stored::plain(arrived[r]);
    sum_of_parts(stream, parts, sum.part(begin, arrived[0].count()), adds);
  });
}

// All sums of a bucket, in scratch.
Stored GradientSums::gathered(Stream& stream, const BucketSum& part) {
  const nn::Bucket& b = *part.bucket;
  const Stored all = empty_stored(stream, {b.count}, b.sums.storage);
  part.owners.all_gather(stream, b.sums.codes, all.codes);
  if (all.scales) part.owners.all_gather(stream, b.sums.scales, all.scales);
  part.owners.finish(stream);
  return all;
}

std::vector<float> GradientSums::gathered_values(Stream& stream) {
  if (empty()) return nn::flat_values(stream, parameters_.gradients());
  std::unordered_map<const Parameter*, std::vector<float>> values;
  for (const auto& part : bucket_sums_) {
    const nn::Bucket& b = *part->bucket;
    const Scope scope(stream);
    const Stored all = part->has_own_sums_only() ? gathered(stream, *part) : Stored{};
    for (std::size_t i = 0; i < b.parameters.size(); ++i)
      values[b.parameters[i]] = nn::flat_values(stream, std::vector{all ? b.cut(all, i) : b.parameters[i]->gradient.stored()});
  }
  std::vector<float> out;
  for (const Parameter* p : parameters_.list()) {
    const auto summed = values.find(p);  // stacks that no other rank has are not
    const std::vector<float> of = summed != values.end() ? summed->second : nn::flat_values(stream, std::vector{p->gradient.stored()});
    out.insert(out.end(), of.begin(), of.end());
  }
  return out;
}

std::map<const Parameter*, ScaleUse> GradientSums::scale_uses(Stream& stream) const {
  std::map<const Parameter*, ScaleUse> out;
  for (const auto& part : bucket_sums_) {
    if (!part->shared) continue;
    const std::vector<ScaleUse> uses = part->shared->uses(stream);
    std::size_t next = 0;
    for (std::size_t i = 0; i < part->bucket->parameters.size(); ++i)
      if (part->shared->scales(i)) out.emplace(part->bucket->parameters[i], uses[next++]);
  }
  return out;
}

void GradientSums::join_ends(Stream& stream) {
  for (const auto& part : bucket_sums_)
    if (part->shared) part->shared->join_other_sums(stream);
}

void GradientSums::visit_state(StateVisitor& visitor) {
  if (!visitor.has("mu")) return visit_tables(visitor);
  for (const Parameter* p : parameters_.list()) visit_factor(visitor, *p);
}

void GradientSums::visit_factor(StateVisitor& visitor, const Parameter& p) {
  const std::string name = "mu." + p.path;
  const auto at = number_of_.find(&p.gradient);
  const BucketSum* const part = at != number_of_.end() ? bucket_sums_[at->second].get() : nullptr;
  const std::size_t i = part ? std::size_t(std::ranges::find(part->bucket->parameters, &p) - part->bucket->parameters.begin()) : 0;
  if (part == nullptr || !part->shared || !part->shared->adapts() || !part->shared->scales(i) || !visitor.has(name))
    return visitor.unused(name);
  static const Cut of_another = Cut::copied({1}, 2, false);
  const Tensor mu = part->shared->mu().rows(std::int64_t(i), 1);
  visitor.state(name + ".factor", {Stored::plain(mu), {1}, 0, part->leads ? nullptr : &of_another}, Tiny::keep);
}

// Of an earlier version: those of all parameters of a bucket, under the name of its first one.
void GradientSums::visit_tables(StateVisitor& visitor) {
  for (const Parameter* p : parameters_.list()) {
    const auto of = std::ranges::find_if(
        bucket_sums_, [&](const auto& part) { return part->bucket->parameters.front() == p && part->shared && part->shared->adapts(); });
    if (of != bucket_sums_.end()) visitor.optional(p->path + ".mu", (*of)->shared->mu());
    else visitor.unused(p->path);
  }
}

}  // namespace octet::parallel
