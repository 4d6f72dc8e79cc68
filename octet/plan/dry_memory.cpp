#include "octet/plan/dry_memory.hpp"

#include <algorithm>

namespace octet::plan {
namespace {

constexpr std::int64_t few = 4, more = 6;  // blocks of even and odd numbers share memory at stage 3

double of(const MemoryPeak& m, Category c) { return double(m.by_category[std::size_t(c)]); }

StageMemory sorted(const MemoryPeak& m) {
  return {.weights = of(m, Category::weights),
          .operands = of(m, Category::weight_operands),
          .gradients = of(m, Category::gradients),
          .optimizer = of(m, Category::optimizer),
          .activations = of(m, Category::activations),
          .working = of(m, Category::quantizer_state) + of(m, Category::temporaries) + of(m, Category::workspace)};
}

// a * x + b * y of every member but `overhead`.
StageMemory combined(double a, const StageMemory& x, double b, const StageMemory& y) {
  StageMemory out;
  for (const auto member : {&StageMemory::weights, &StageMemory::operands, &StageMemory::gradients, &StageMemory::optimizer,
                            &StageMemory::activations, &StageMemory::working})
    out.*member = a * x.*member + b * y.*member;
  return out;
}

}  // namespace

std::vector<std::string> recompute_words(Recomputed r) {
  if (r == Recomputed::block) return {"block"};
  return r == Recomputed::norms ? std::vector<std::string>{"norm", "activation"} : std::vector<std::string>{};
}

// The layout of a stage's dry run, which has no pipeline: with the axes and the stage of ZeRO that this version trains.
Layout DryMemory::stage_of(const Layout& l) const {
  Layout stage = l;
  stage.pipeline = stage.chunks = 1, stage.schedule = parallel::Schedule::one_f_one_b;
  if (trains(stage, subject_)) return stage;
  stage.tensor = stage.context = 1, stage.data = l.sharers();
  while (stage.zero > 0 && !trains(stage, subject_)) --stage.zero;
  return stage;
}

train::EngineConfig DryMemory::config_of(const Layout& l) const {
  const Layout stage = stage_of(l);
  train::EngineConfig c = config_;
  c.precision = l.eight_bit ? eight_bit_ : plain_;
  c.model.recompute = nn::Recompute::named(recompute_words(l.recomputed)), c.model.recompute_layers = 0;
  c.optimizer->level = l.level;
  c.sequence = job_.sequence * stage.context / l.context;
  set_ranks(c.ranks, stage);
  c.planned_ranks = int(l.sharers());
  return c;
}

MemoryPeak DryMemory::run(const Layout& l, std::int64_t layers, std::int64_t ahead) const {
  train::EngineConfig c = config_of(l);
  c.shape.layers = layers, c.shape.mtp_depth = ahead;
  return train::dry_run(c, target_, l.micro_batch, std::min<std::int64_t>(2, job_.micro_batches(l))).memory;
}

MemoryPeak DryMemory::arena(const Layout& l) const { return arena(l, job_.micro_batches(l)); }

MemoryPeak DryMemory::arena(const Layout& l, std::int64_t micro_batches) const {
  train::EngineConfig c = config_of(l);
  c.ranks.pipeline = l.pipeline, c.ranks.schedule = l.schedule, c.ranks.chunks = l.chunks;
  MemoryPeak most;
  for (int stage = 0; stage < int(l.pipeline); ++stage)
    if (MemoryPeak m = train::dry_run(c, target_, l.micro_batch, micro_batches, {.stage = stage}).memory; m.total > most.total) most = m;
  return most;
}

double DryMemory::needed(const Layout& l) {
  if (!trains(l, subject_)) return 0;
  // Without a pipeline, later micro-batches need no more.
  return double(arena(l, l.pipeline > 1 ? job_.micro_batches(l) : std::min<std::int64_t>(2, job_.micro_batches(l))).total);
}

LayerMemory DryMemory::layer_memory(const Layout& l) {
  const Layout stage = stage_of(l);
  const Key key{stage.tensor, stage.context, stage.experts, l.context, l.micro_batch, l.recomputed,
                stage.zero,   l.sharers(),   l.shards(),    l.level,   l.eight_bit,   job_.micro_batches(l) > 1};
  const auto found = known_.find(key);
  LayerMemory out;
  if (found != known_.end()) {
    out = found->second;
  } else {
    const StageMemory a = sorted(run(l, few, 0)), b = sorted(run(l, more, 0));
    out.layer = combined(1.0 / (more - few), b, -1.0 / (more - few), a);
    StageMemory rest = combined(1, a, -double(few), out.layer);
    out.layer.working = std::max(0.0, out.layer.working);
    // States besides blocks are those of embedding and head; a tied one is on both ends.
    const double part = config_.shape.tied ? 1 : 0.5;
    out.embedding = out.head = {.weights = part * rest.weights,
                                .operands = part * rest.operands,
                                .gradients = part * rest.gradients,
                                .optimizer = part * rest.optimizer};
    out.rest = {.activations = rest.activations, .working = rest.working + double(config_.shape.layers) * out.layer.working};
    out.layer.working = 0;
    if (const std::int64_t ahead = config_.shape.mtp_depth; ahead > 0) out.ahead = combined(1, sorted(run(l, few, ahead)), -1, a);
    known_.emplace(key, out);
  }
  // Tensor parallelism divides matrices, and with sequence parallelism activations, too.
  const double t = double(stage.tensor) / double(l.tensor);
  for (StageMemory* m : {&out.layer, &out.embedding, &out.head, &out.ahead}) *m = combined(t, *m, 0, {});
  out.rest.activations *= t;
  return out;
}

}  // namespace octet::plan
