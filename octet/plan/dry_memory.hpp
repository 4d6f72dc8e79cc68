#pragma once

#include <map>
#include <tuple>

#include "octet/plan/memory.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"
#include "octet/train/step/engine_layout.hpp"

namespace octet::plan {

/// By dry runs of this program on the null device. Two runs of few blocks give the bytes per block and those besides blocks, a third one
/// those of layers that predict further tokens. They have the job's data axis and stage of ZeRO, and its tensor and context axes where this
/// version trains them. Other axes divide these bytes.
class DryMemory : public MemorySource {
 public:
  /// `config`: of the run, with its recipe. `plain`: the recipe of layouts without 8-bit operands.
  DryMemory(const train::EngineConfig& config, const scaling::PrecisionConfig& eight_bit, const scaling::PrecisionConfig& plain,
            Target target, const Job& job)
      : config_(config), eight_bit_(eight_bit), plain_(plain), target_(target), job_(job), subject_(train::subject_of(config, 0)) {
    config_.micro_batches = 0;  // not those of the run
    subject_.sequence = job.sequence, subject_.recipe = plain.recipe, subject_.eight_bit_recipe = eight_bit.recipe;
  }

  LayerMemory layer_memory(const Layout&) override;
  /// arena()'s, where this version trains the layout.
  double needed(const Layout&) override;
  /// The complete model, where this version trains the layout: the arena's peak of a real run, on the stage that needs most.
  MemoryPeak arena(const Layout&) const;

 private:
  MemoryPeak run(const Layout&, std::int64_t layers, std::int64_t ahead) const;
  MemoryPeak arena(const Layout&, std::int64_t micro_batches) const;
  train::EngineConfig config_of(const Layout&) const;
  Layout stage_of(const Layout&) const;

  train::EngineConfig config_;
  scaling::PrecisionConfig eight_bit_, plain_;
  Target target_;
  Job job_;
  train::Subject subject_;
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, Recomputed, std::int64_t, std::int64_t,
                         std::int64_t, optim::Level, bool, bool>;
  std::map<Key, LayerMemory> known_;
};

/// The keys of model.recompute.
std::vector<std::string> recompute_words(Recomputed);

}  // namespace octet::plan
