#include "octet/train/step/stage_parameters.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "octet/parallel/host_values.hpp"
#include "octet/train/step/stage.hpp"

namespace octet::train {
namespace {

using Staged = std::vector<StagedParameter>;

std::unique_ptr<Parameter> whole_of(const Parameter& p) {
  auto out = std::make_unique<Parameter>(p.path, p.whole(), p.init, p.role);
  out->gradient.add_use(p.gradient.may_be_narrow() ? GradientUse::product : GradientUse::sum);
  return out;
}

// Those of the whole model: those of blocks belong to the stage of their block, the ones before
// the blocks to the first stage, the ones behind them to the stage of the last block, with blocks that predict further tokens.
struct Collect final : nn::Visitor {
  explicit Collect(const std::vector<std::vector<models::ModelChunk>>& chunks) {
    for (std::size_t stage = 0; stage < chunks.size(); ++stage)
      for (const models::ModelChunk& chunk : chunks[stage])
        for (int b = chunk.first; b < chunk.end; ++b) stages.emplace(b, int(stage));
    last = stages.rbegin()->second;
  }
  void block(int number) override { now = number, before = false; }
  void experts(const Parameter& p) override { stack = &p; }
  void parameter(Parameter& p) override { add(p, own); }
  void adapter(Parameter& p) override { add(p, adapters); }
  void add(const Parameter& p, Staged& to) const {
    to.push_back({whole_of(p), before ? 0 : stages.contains(now) ? stages.at(now) : last, stack == &p});
  }
  Staged trained() { return std::move(adapters.empty() ? own : adapters); }
  Staged frozen() { return adapters.empty() ? Staged() : std::move(own); }
  const Parameter* stack = nullptr;
  int last = 0, now = -1;
  bool before = true;
  std::map<int, int> stages;  // by block
  Staged own, adapters;
};

Collect of_stages(const EngineConfig& c, const Target& target) {
  WholeModel whole(c);
  Collect all(chunks_of_stages(c, target, whole));
  whole.model->visit(all);
  return all;
}

using Stacks = std::set<const Parameter*>;

Stacks stacks_of(const nn::Parameters& own) {
  Stacks out;
  for (const nn::Bucket& b : own.buckets())
    if (b.experts) out.insert(b.parameters.begin(), b.parameters.end());
  return out;
}

Staged whole_ones(const std::vector<Parameter*>& own, const Stacks& stacks) {
  Staged out;
  for (const Parameter* p : own) out.push_back({whole_of(*p), 0, stacks.contains(p)});
  return out;
}

}  // namespace

StageParameters::StageParameters(const EngineConfig& c, const Target& target, comm::Communicator& stages, const nn::Parameters& trained)
    : stages_(stages) {
  fill(stages.size() == 1 ? whole_ones(trained.list(), stacks_of(trained)) : of_stages(c, target).trained(), trained.list());
}

StageParameters::StageParameters(const EngineConfig& c, const Target& target, comm::Communicator& stages,
                                 const std::vector<Parameter*>& frozen)
    : stages_(stages) {
  fill(stages.size() == 1 || !c.adapters ? whole_ones(frozen, {}) : of_stages(c, target).frozen(), frozen);
}

void StageParameters::fill(std::vector<StagedParameter> all, const std::vector<Parameter*>& own) {
  std::size_t found = 0;
  for (auto& [whole, stage, stack] : all) {
    const auto here = std::ranges::find(own, whole->path, &Parameter::path);
    found += here != own.end();
    places_.push_back({{std::move(whole), stage, stack}, here == own.end() ? -1 : here - own.begin()});
  }
  check(found == own.size(), "stage parameters: {} of {} are those of the whole model", found, own.size());
}

std::int64_t StageParameters::count() const {
  std::int64_t n = 0;
  for (const NumberedParameter& p : places_) n += p.whole->shape.count();
  return n;
}

void StageParameters::each_absent(const std::function<void(const std::string&)>& f) const {
  for (const NumberedParameter& p : places_)
    if (p.own < 0) f(p.whole->path);
}

std::vector<Parameter*> StageParameters::completed(const std::vector<Parameter*>& own) const {
  std::vector<Parameter*> out;
  for (const NumberedParameter& p : places_) out.push_back(p.own < 0 ? p.whole.get() : own[std::size_t(p.own)]);
  return out;
}

std::vector<std::vector<float>> StageParameters::with_other_stages(Stream& stream, std::vector<std::vector<float>> own,
                                                                   std::size_t per_parameter) const {
  std::vector<std::vector<float>> out;
  for (const NumberedParameter& p : places_) {
    const std::size_t count = per_parameter > 0 ? per_parameter : std::size_t(p.whole->shape.count());
    std::vector<float> here = p.own < 0 ? std::vector<float>() : std::move(own[std::size_t(p.own)]);
    out.push_back(parallel::brought_to_first(stream, stages_, std::move(here), p.stage, count));
  }
  return out;
}

}  // namespace octet::train
