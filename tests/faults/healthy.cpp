#include "tests/faults/healthy.hpp"

#include <filesystem>

#include "octet/scaling/recipe.hpp"
#include "octet/telemetry/event_line.hpp"
#include "octet/telemetry/run_record.hpp"
#include "octet/train/run/trainer.hpp"

namespace octet::faults {

Healthy healthy_runs(const train::RunConfig& config, std::int64_t runs) {
  std::vector<std::string> recipes = scaling::compared_recipes();
  recipes.insert(recipes.begin(), "bf16");
  Healthy out{.runs = runs, .steps = config.train.steps};
  for (std::int64_t i = 0; i < runs; ++i) {
    train::RunConfig c = config;
    c.recipe.recipe = recipes[std::size_t(i) % recipes.size()], c.seed = 1 + i / std::int64_t(recipes.size());
    c.name = format("healthy-{}", i);
    const train::Corpus corpus(c.data, c.train, c.model.shape().vocabulary);
    const std::string folder =
        train::Trainer(c, corpus, {.console = train::Console::Kind::quiet, .save_weights = false, .save_finished = false}).run().folder;
    for (const telemetry::AlertEvent& a : telemetry::read_run(folder).alerts) {
      out.alerts.push_back(format("{}, seed {}: {}", c.recipe.recipe, c.seed, telemetry::event_line(a)));
      out.warnings += a.severity != telemetry::Severity::info;
    }
    std::filesystem::remove_all(folder);
  }
  return out;
}

}  // namespace octet::faults
