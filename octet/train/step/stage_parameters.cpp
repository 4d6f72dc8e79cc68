#include "octet/train/step/stage_parameters.hpp"

#include <algorithm>
#include <map>

#include "octet/parallel/host_values.hpp"
#include "octet/train/step/stage.hpp"

namespace octet::train {
namespace {

// Whole parameters, and the first stage that has each.
using Staged = std::vector<std::pair<std::unique_ptr<Parameter>, int>>;

// Those of the whole model: those of blocks belong to the stage of their block, the ones before
// the blocks to the first stage, the ones behind them to the stage of the last block.
struct Collect final : nn::Visitor {
  explicit Collect(const std::vector<std::vector<models::Chunk>>& chunks) {
    for (std::size_t stage = 0; stage < chunks.size(); ++stage)
      for (const models::Chunk& chunk : chunks[stage])
        for (int b = chunk.first; b < chunk.end; ++b) stages.emplace(b, int(stage));
    last = stages.rbegin()->second;
  }
  void block(int number) override { now = number, before = false; }
  void parameter(Parameter& p) override { add(p, own); }
  void adapter(Parameter& p) override { add(p, adapters); }
  void add(const Parameter& p, Staged& to) const {
    to.emplace_back(std::make_unique<Parameter>(p.path, p.shape, p.init, p.role), before ? 0 : now < 0 ? last : stages.at(now));
  }
  Staged of_kind(StageParameters::Kind kind) {
    if (kind == StageParameters::Kind::trained) return std::move(adapters.empty() ? own : adapters);
    return adapters.empty() ? Staged() : std::move(own);
  }
  int last = 0, now = -1;
  bool before = true;
  std::map<int, int> stages;  // by block
  Staged own, adapters;
};

Staged of_stages(const EngineConfig& c, const Target& target, StageParameters::Kind kind) {
  Collect all(chunks_of_stages(c, target));
  WholeModel(c).model->visit(all);
  return all.of_kind(kind);
}

Staged whole_ones(const std::vector<Parameter*>& own) {
  Staged out;
  for (const Parameter* p : own) out.emplace_back(std::make_unique<Parameter>(p->path, p->whole(), p->init, p->role), 0);
  return out;
}

}  // namespace

StageParameters::StageParameters(const EngineConfig& c, const Target& target, comm::Communicator& stages,
                                 const std::vector<Parameter*>& own, Kind kind)
    : stages_(stages) {
  std::size_t found = 0;
  for (auto& [whole, stage] : stages.size() == 1 ? whole_ones(own) : of_stages(c, target, kind)) {
    const auto here = std::ranges::find(own, whole->path, &Parameter::path);
    found += here != own.end();
    places_.push_back({std::move(whole), stage, here == own.end() ? -1 : here - own.begin()});
  }
  check(found == own.size(), "stage parameters: {} of {} are those of the whole model", found, own.size());
}

std::int64_t StageParameters::count() const {
  std::int64_t n = 0;
  for (const Place& p : places_) n += p.whole->shape.count();
  return n;
}

void StageParameters::each_absent(const std::function<void(const std::string&)>& f) const {
  for (const Place& p : places_)
    if (p.own < 0) f(p.whole->path);
}

void StageParameters::each(const std::function<void(const Parameter&, std::ptrdiff_t)>& f) const {
  for (const Place& p : places_) f(*p.whole, p.own);
}

std::vector<Parameter*> StageParameters::completed(const std::vector<Parameter*>& own) const {
  std::vector<Parameter*> out;
  for (const Place& p : places_) out.push_back(p.own < 0 ? p.whole.get() : own[std::size_t(p.own)]);
  return out;
}

std::vector<std::vector<float>> StageParameters::with_other_stages(Stream& stream, std::vector<std::vector<float>> own) const {
  std::vector<std::vector<float>> out(stages_.rank() == 0 ? places_.size() : 0);
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const Place& p = places_[i];
    if (stages_.rank() > 0) {
      if (p.stage == stages_.rank()) parallel::send_values(stream, stages_, own[std::size_t(p.own)], 0);
    } else if (p.stage == 0) {
      out[i] = std::move(own[std::size_t(p.own)]);
    } else {
      out[i].resize(std::size_t(p.whole->shape.count()));
      parallel::receive_values(stream, stages_, out[i], p.stage);
    }
  }
  return out;
}

}  // namespace octet::train
