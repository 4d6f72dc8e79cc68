#include "octet/train/step/pipeline.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "octet/train/step/upload.hpp"

namespace octet::train {
namespace {

using parallel::PipelineAction, parallel::StageActions;
using Kind = PipelineAction::Kind;

// Of a flight's recording.
enum Part : int { forward_part, backward_part, weights_part };

std::int64_t address(const Tensor& t) { return std::int64_t(reinterpret_cast<std::uintptr_t>(t.data)); }

}  // namespace

Pipeline::Pipeline(Stream& stream, models::Model& model, comm::Communicator& stages, parallel::Schedule schedule, int chunks, Wire wire,
                   const SequenceMember& member, parallel::Turns& turns)
    : stream_(stream),
      model_(model),
      stages_(stages),
      schedule_(schedule),
      shape_(parallel::pipeline_shape(schedule, stages.size(), chunks, 0)),
      transfers_(stages, wire),
      member_(member),
      turns_(turns) {
  shape_.pairs = turns.pairs() && (shape_.parts() == 1 || (shape_.folded && shape_.stages > 1));
  if (shape_.pairs) second_ = std::make_unique<Stream>(stream);
}

StageActions Pipeline::actions_of(int micro_batches) const {
  if (shape_.parts() == 1) return parallel::actions_in_pairs(micro_batches);
  parallel::PipelineShape shape = shape_;
  shape.micro_batches = micro_batches;
  return parallel::pipeline_actions(schedule_, shape)[std::size_t(stages_.rank())];
}

Pipeline::Course Pipeline::course_of(StageActions actions) const {
  Course out{std::move(actions), {}};
  for (const PipelineAction& a : out.actions)
    if (a.kind == Kind::weight_gradient) out.deferred.insert({a.micro_batch, a.chunk});
  return out;
}

bool Pipeline::train(std::span<const data::Batch> batches, const Step& step) {
  if (one_by_one()) return train_whole(batches, step);
  const int n = int(batches.size());
  const auto [at, made] = courses_.try_emplace(n);
  if (made) at->second = course_of(actions_of(n));
  if (!step.proceeds()) return false;
  run(at->second, batches, step);
  return true;
}

void Pipeline::train_one(const data::Batch& batch, const Step& step) {
  const std::span one(&batch, 1);
  if (one_by_one()) return void(train_whole(one, step));
  parallel::PipelineShape shape = shape_;
  shape.micro_batches = 1;
  run(course_of(parallel::actions_in_turn(shape)[std::size_t(stages_.rank())]), one, step);
}

bool Pipeline::train_whole(std::span<const data::Batch> batches, const Step& step) {
  const int n = int(batches.size());
  for (int i = 0; i < n; ++i) {
    if (!step.proceeds()) return false;
    const data::Batch& given = batches[std::size_t(i)];
    const Scope micro_batch(stream_, step.pass.keep);
    const models::TokenBatch batch = upload(stream_, given, step.pass.keep, member_, ahead(0));
    step.before(i);
    const int place = step.exchanges ? 1 + (i == 0) + 2 * (i + 1 == n) : 0;
    recordings_.run(stream_, {given.rows, given.length, std::bit_cast<std::int32_t>(step.factor.constant), step.pass.measure_noise, place},
                    [&] {
                      model_.forward(stream_, batch, step.pass, step.sums, step.factor);
                      model_.backward(stream_, batch, step.pass);
                      step.after();
                    });
  }
  return true;
}

void Pipeline::run(const Course& course, std::span<const data::Batch> batches, const Step& step) {
  for (auto at = course.actions.begin(); at != course.actions.end(); ++at) {
    const PipelineAction& a = *at;
    if (a.paired) pair(a, *++at, course, batches, step);
    else if (a.computes()) compute(a, course, batches, step);
    else if (a.sends() || !a.transfers()) send(a, batches);
    else receive(a, batches);
  }
  for (const auto& [slot, boundary] : leaving_) transfers_.finish_send(boundary);
  leaving_.clear();
  check(flights_.empty(), "pipeline: {} micro-batches are still in flight", flights_.size());
  step.after();
}

void Pipeline::compute(const PipelineAction& a, const Course& course, std::span<const data::Batch> batches, const Step& step) {
  const Key key{a.micro_batch, a.chunk};
  switch (a.kind) {
    case Kind::forward: return forward(key, course.deferred.contains(key), batches, step);
    case Kind::weight_gradient: return weight_gradient(key, step);
    default: return backward(key, step, stream_);
  }
}

// Gradients have draws of their micro-batch, so a pass numbers them again after its turn. On a GPU the computation of both is in the order
// of their turns, and side work of one is beside that of the other.
void Pipeline::pair(const PipelineAction& a, const PipelineAction& b, const Course& course, std::span<const data::Batch> batches,
                    const Step& step) {
  const bool of_experts = turns_.of_experts();
  turns_.run({.name = format("forward of micro-batch {}", a.micro_batch),
              .work = [&] { compute(a, course, batches, step); },
              .resumed =
                  [&] {
                    wait_for(stream_, *second_);
                    step.resumed(a.micro_batch);
                  },
              .first = of_experts ? "attention" : "computation"},
             {.name = format("backward of micro-batch {}", b.micro_batch),
              .work =
                  [&] {
                    backward({b.micro_batch, b.chunk}, step, *second_);
                  },
              .resumed =
                  [&] {
                    step.resumed(b.micro_batch);
                    wait_for(*second_, stream_);
                  },
              .first = of_experts ? "experts" : "computation"},
             step.piece);
  wait_for(stream_, *second_);
}

void Pipeline::receive(const PipelineAction& a, std::span<const data::Batch> batches) {
  const Key key{a.micro_batch, a.chunk};
  if (a.kind == Kind::receive_activation) {
    const Flight& f = open(key, batches[std::size_t(a.micro_batch)]);
    return transfers_.receive(stream_, f.in, a.peer, f.choices);
  }
  const Flight& f = flights_.at(key);
  transfers_.finish_send(f.output);
  transfers_.receive(stream_, f.boundary, a.peer, f.choices);
}

// To another stage, or into the other chunk of this one.
void Pipeline::send(const PipelineAction& a, std::span<const data::Batch> batches) {
  const Key key{a.micro_batch, a.chunk}, other{a.micro_batch, a.peer};
  switch (a.kind) {
    case Kind::send_activation: flights_.at(key).output = begin_send(flights_.at(key), a.peer); break;
    case Kind::send_gradient: send_gradient(key, a.peer); break;
    case Kind::keep_activation: {
      const Flight& to = open(other, batches[std::size_t(a.micro_batch)]);
      pass_on(flights_.at(key), to.in, to);
      break;
    }
    default: pass_on(flights_.at(key), flights_.at(other).boundary, flights_.at(other)); give_back(key, Use::boundaries);
  }
}

void Pipeline::pass_on(const Flight& from, const Tensor& boundary, const Flight& to) {
  copy(stream_, from.boundary, boundary);
  if (from.choices) copy(stream_, from.choices, to.choices);
}

// The first free slot, so that few have memory.
Region Pipeline::take(Flight& f, Use use) {
  std::vector<bool>& taken = taken_[std::size_t(use)];
  const auto free = std::find(taken.begin(), taken.end(), false);
  const int slot = f.slots[std::size_t(use)] = int(free - taken.begin());
  if (free == taken.end()) taken.push_back(true);
  else *free = true;
  return region(use, slot);
}

void Pipeline::give_back(const Key& key, Use use) {
  Flight& f = flights_.at(key);
  const int slot = std::exchange(f.slots[std::size_t(use)], -1);
  stream_.arena().clear(region(use, slot));
  taken_[std::size_t(use)][std::size_t(slot)] = false;
  if (std::ranges::all_of(f.slots, [](int s) { return s < 0; })) flights_.erase(key);
}

Pipeline::Flight& Pipeline::open(const Key& key, const data::Batch& batch) {
  Flight& f = flights_[key];
  const Region boundaries = take(f, Use::boundaries);
  if (const auto last = leaving_.extract(f.slots[std::size_t(Use::boundaries)])) transfers_.finish_send(last.mapped());
  f.batch = upload(stream_, batch, boundaries, member_, ahead(key.second));
  if (!embeds(key.second)) f.in = model_.boundary(stream_, f.batch, boundaries);
  f.boundary = model_.boundary(stream_, f.batch, boundaries);
  f.codes = transfers_.codes_for(stream_, f.boundary, boundaries);
  f.choices = model_.choices(stream_, boundaries);
  if (f.choices && embeds(key.second)) clear(stream_, f.choices);
  return f;
}

scaling::Pass Pipeline::pass_of(Flight& f, const Step& step) {
  scaling::Pass pass = step.pass;
  pass.keep = region(Use::saved, f.slots[std::size_t(Use::saved)]);
  pass.later = f.later ? &*f.later : nullptr;
  return pass;
}

// Everything that decides the work of a micro-batch in a chunk but values in memory. Saved activations and operands begin with their slots.
// On a CPU the first products of a step store.
Replay::Form Pipeline::form_of(const Key& key, const Flight& f, const Step& step) const {
  const models::TokenBatch& b = f.batch;
  Replay::Form form{key.second,
                    key.first == 0 && !stream_.apart_from_host(),
                    b.tokens.count(),
                    b.sequence,
                    std::int64_t(step.pass.kind),
                    step.pass.count,
                    step.pass.measure_noise,
                    std::bit_cast<std::int32_t>(step.factor.constant),
                    std::int64_t(stream_.arena().mark(stream_.own(Lifetime::scratch)).bytes)};
  form.insert(form.end(), f.slots.begin(), f.slots.end());
  for (const Tensor& t : {b.tokens, b.targets, b.document_starts, b.pairs, b.references, f.in, f.boundary, f.choices,
                          step.factor.loss_scale, step.sums.sum, step.sums.counted, step.sums.ahead_sum, step.sums.ahead_counted})
    form.push_back(address(t));
  for (const models::TokensAhead& further : b.ahead) form.push_back(address(further.tokens)), form.push_back(address(further.targets));
  return form;
}

// Passes in turn are not recorded: the host reads how many rows come to experts, and allocations and numbers of draws of two passes mix.
Replay::Turn Pipeline::turn_of(const Key& key, const Flight& f, int micro_batches, const Step& step) {
  if (shape_.pairs || (step.exchanges && key.first + 1 == micro_batches)) return {};
  return recordings_.begin(stream_, form_of(key, f, step));
}

void Pipeline::forward(const Key& key, bool defers, std::span<const data::Batch> batches, const Step& step) {
  const int chunk = key.second;
  Flight& f = embeds(chunk) ? open(key, batches[std::size_t(key.first)]) : flights_.at(key);
  take(f, Use::saved);
  if (defers) f.later.emplace(take(f, Use::operands));
  step.before(key.first);
  f.turn = turn_of(key, f, int(batches.size()), step);
  recordings_.part(stream_, f.turn, forward_part, [&] {
    model_.forward(stream_, f.batch, pass_of(f, step), step.sums, step.factor,
                   {.number = chunk, .in = f.in, .out = has_head(chunk) ? Tensor{} : f.boundary, .choices = f.choices});
  });
}

void Pipeline::backward(const Key& key, const Step& step, Stream& stream) {
  Flight& f = flights_.at(key);
  step.before(key.first);
  wait_for(stream, stream_);
  recordings_.part(stream, f.turn, backward_part, [&] { model_.backward(stream, f.batch, pass_of(f, step), f.boundary); });
  give_back(key, Use::saved);
  if (embeds(key.second)) give_back(key, Use::boundaries);
}

void Pipeline::weight_gradient(const Key& key, const Step& step) {
  Flight& f = flights_.at(key);
  step.before(key.first);
  recordings_.part(stream_, f.turn, weights_part, [&] { f.later->run(stream_); });
  give_back(key, Use::operands);
}

// The next chunk reads a chunk's boundary, on the next stage or here.
template <class F>
void Pipeline::each_chunk(const models::TokenBatch& batch, const F& f) {
  const Region boundaries = region(Use::boundaries, 0);
  const Scope scope(stream_, boundaries);
  const int here = stages_.rank();
  Tensor in, out;
  for (int c = 0; c < shape_.chunks; ++c) {
    const int before = part(c) - 1, after = part(c) + 1;
    if (!embeds(c) && !in) in = model_.boundary(stream_, batch, boundaries);
    if (!has_head(c) && !out) out = model_.boundary(stream_, batch, boundaries);
    if (!embeds(c) && shape_.stage_of(before) != here) transfers_.receive(stream_, in, shape_.stage_of(before));
    f(models::StageBoundary{.number = c, .in = embeds(c) ? Tensor{} : in, .out = has_head(c) ? Tensor{} : out});
    if (has_head(c)) continue;
    if (shape_.stage_of(after) == here) std::swap(in, out);
    else transfers_.send(stream_, out, shape_.stage_of(after));
  }
}

void Pipeline::loss(const data::Batch& batch, const scaling::Pass& pass, const nn::LossSums& sums) {
  const Scope scope(stream_, Lifetime::step);
  const models::TokenBatch on_device = upload(stream_, batch, Lifetime::step, member_);
  each_chunk(on_device, [&](const models::StageBoundary& place) { model_.loss(stream_, on_device, pass, sums, place); });
}

void Pipeline::logits(const models::TokenBatch& batch, const scaling::Pass& pass, std::int64_t last, const Tensor& logits) {
  each_chunk(batch, [&](const models::StageBoundary& place) { model_.logits(stream_, batch, pass, last, logits, place); });
  stages_.broadcast(stream_, logits, shape_.stage_of(shape_.parts() - 1));
  stages_.finish(stream_);
}

void Pipeline::send_gradient(const Key& key, int to) {
  const Flight& f = flights_.at(key);
  leaving_[f.slots[std::size_t(Use::boundaries)]] = begin_send(f, to);
  give_back(key, Use::boundaries);
}

}  // namespace octet::train
