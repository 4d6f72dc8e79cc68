#pragma once

#include <cmath>

#include "octet/nn/host_values.hpp"
#include "octet/telemetry/run_record.hpp"
#include "octet/train/run/small_runs.testing.hpp"

// Runs that recover: text with a few damaged passages makes spikes, and damaged weights an incident that only a checkpoint ends.

namespace octet::train::testing {

// Text from which a model learns, and passages of noise.
inline std::vector<std::string> damaged_texts() {
  std::vector<std::string> texts;
  for (int i = 0; i < 12; ++i) {
    texts.emplace_back();
    for (int k = 0; k < 16; ++k) texts.back() += format("document {} counts to {}\n", i, k * k);
    if (i % 4 == 3) texts.push_back(data::noise(40, std::uint64_t(i)));
  }
  return texts;
}

// change(path, values): whether the values of a parameter became others.
template <class Change>
void change_weights(Engine& e, const Change& change) {
  for (std::size_t i = 0; i < e.parameters.list().size(); ++i) {
    std::vector<float> values = nn::flat_values(e.stream, {e.parameters.list().at(i)->value});
    if (change(e.parameters.list().at(i)->path, values)) e.parameters.set_values(e.stream, i, values.data());
  }
}

struct Damaged : Runs {
  octet::testing::Scratch learnable;
  explicit Damaged(const std::string& recipe = "delayed") : Runs(recipe) {
    config.data.path = data::make_dataset(learnable, damaged_texts());
    config.data.eval_fraction = 0, config.train.eval_every = 0;
    config.train.steps = 100, config.train.batch = 1, config.train.accumulate = 2;
    config.optim.schedule.kind = optim::ScheduleConfig::Kind::constant;
    config.checkpoint.every = 10, config.checkpoint.keep = 100;
    config.train.save_weights = false;
    config.recovery.mode = health::RecoveryConfig::Mode::act, config.recovery.patience = 3;
    config.recovery.rate.steps = 20;
  }
  // Continues a run with damaged weights.
  template <class Damage>
  Outcome damage(const std::string& folder, const Damage& change) const {
    const Corpus corpus(config.data, config.train, config.model.shape().vocabulary);
    Trainer trainer(config, corpus, {.console = Console::Kind::quiet, .resume = folder});
    change_weights(trainer.engine(), change);
    return trainer.run();
  }
};

inline std::vector<telemetry::RecoveryEvent> recoveries(const std::string& folder, const std::string& rung, const std::string& result) {
  std::vector<telemetry::RecoveryEvent> out = telemetry::read_run(folder).recoveries;
  std::erase_if(out, [&](const telemetry::RecoveryEvent& e) { return e.rung != rung || e.result != result; });
  return out;
}

// The first spike is skipped, the second one halves the rate, and further ones lead back to a checkpoint.
struct SeveralRungs : Damaged {
  SeveralRungs() {
    health::RecoveryConfig& r = config.recovery;
    r.skip.loss = 3, r.skip.most = 1, r.skip.within = 1000, r.rate.most = 1, r.roll_back.most = 10;
    r.patience = 1, config.train.steps = 120;
    config.alerts.set_threshold("saturated", 0);
  }
};

// A value of the embedding becomes NaN: every step is skipped, and no lower action can help.
inline bool poison(const std::string& path, std::vector<float>& values) {
  if (path != "embedding.weight") return false;
  std::ranges::fill(values, NAN);
  return true;
}

// A history of one step lets values of the growing activations be clipped, which an alert names.
struct Clipped : Damaged {
  explicit Clipped(const std::string& recipe = "delayed") : Damaged(recipe) {
    config.train.steps = 40;
    config.alerts.set_threshold("saturated", 1e-4);
    config.recovery.layers.steps = 15, config.recovery.layers.most = 1;
  }
};

}  // namespace octet::train::testing
