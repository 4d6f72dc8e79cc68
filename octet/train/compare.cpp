#include "octet/train/compare.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "octet/base/log.hpp"
#include "octet/telemetry/report/report.hpp"
#include "octet/telemetry/run_record.hpp"
#include "octet/train/evaluate.hpp"
#include "octet/ops/machine/machine.hpp"
#include "octet/train/run_folder.hpp"
#include "octet/train/step.hpp"

namespace octet::train {
namespace {

// The baseline first, then the others; each known, none twice.
std::vector<std::string> all_recipes(const CompareOptions& options) {
  std::vector<std::string> out{options.baseline};
  for (const auto& recipe : options.recipes) {
    make_recipe(recipe, {});
    if (recipe != options.baseline && std::find(out.begin() + 1, out.end(), recipe) != out.end())
      throw ConfigError(format("--recipes names {} twice; leave one out", recipe));
    if (recipe != options.baseline) out.push_back(recipe);
  }
  make_recipe(options.baseline, {});
  return out;
}

RunConfig config_of(RunConfig c, const std::string& recipe, const CompareOptions& options, std::int64_t seed) {
  c.recipe.recipe = recipe;
  // A choice of format that this recipe does not have is no mistake here: it was made for those that have it.
  try {
    make_recipe(recipe, c.recipe.options);
  } catch (const ConfigError&) {
    c.recipe.options.format = "default";
  }
  c.seed = seed;
  c.name = options.seeds > 1 ? format("{}-seed{}", recipe, seed) : recipe;
  return c;
}

// Seconds that one step of each recipe takes, and one evaluation of each, together: two steps, the second one counts.
struct Cost {
  double step = 0, evaluation = 0;
};
Cost measure_cost(const RunConfig& config, const std::vector<std::string>& recipes, const CompareOptions& options, const Corpus& corpus) {
  const auto now = [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
  Cost cost;
  for (const auto& recipe : recipes) {
    const RunConfig c = config_of(config, recipe, options, config.seed);
    const Device device = device_named(c.device);
    Engine engine(engine_config(c), device, machine_target(device));
    data::Loader loader(corpus.training(), {.rows = c.train.batch, .seed = std::uint64_t(c.seed)});
    engine.parameters.initialize(engine.stream, std::uint64_t(c.seed));
    prepare(engine);
    for (int i = 0; i < 2; ++i) {
      std::vector<data::Batch> micro_batches;
      for (std::int64_t m = 0; m < c.train.accumulate; ++m) micro_batches.push_back(loader.next());
      const double begin = now();
      run_step(engine, micro_batches, {});
      finish_step(engine);
      wait(engine.stream);
      if (i == 1) cost.step += now() - begin;
    }
    if (corpus.held_out() == nullptr) continue;
    const double begin = now();
    evaluate(engine, *corpus.held_out());
    cost.evaluation += now() - begin;
  }
  return cost;
}

// The number of steps with which all runs and their evaluations end within max_seconds.
std::int64_t steps_within(const RunConfig& config, const std::vector<std::string>& recipes, const CompareOptions& options, const Corpus& corpus) {
  const auto begin = std::chrono::steady_clock::now();
  const Cost cost = measure_cost(config, recipes, options, corpus);
  const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double every = config.train.eval_every > 0 ? double(config.train.eval_every) : 1e9;
  const double budget = (config.train.max_seconds * 0.95 - spent) / double(options.seeds) - cost.evaluation;
  const double steps = budget / (cost.step + cost.evaluation / every);
  if (steps < 1)
    throw ConfigError(format("--max-time {} is too short: one step of all {} recipes takes {} s; allow more time or compare fewer recipes",
                             duration_text(config.train.max_seconds), recipes.size(), fixed(cost.step, 1)));
  return std::int64_t(steps);
}

}  // namespace

CompareOutcome compare(RunConfig config, const CompareOptions& options) {
  const std::vector<std::string> recipes = all_recipes(options);
  const Corpus corpus(config.data, config.train, config.model.shape().vocabulary);
  if (config.train.max_seconds > 0) {
    log::info("timing one step of each recipe");
    const std::int64_t wanted = config.train.steps > 0 || config.train.tokens > 0 ? config.steps() : 0;
    const std::int64_t possible = steps_within(config, recipes, options, corpus);
    config.train.steps = wanted > 0 ? std::min(wanted, possible) : possible;
    config.train.max_seconds = 0;
    log::info("{} steps of {} tokens for each of {} runs", config.train.steps, grouped(config.tokens_per_step()), recipes.size() * std::size_t(options.seeds));
  }
  const std::string folder = make_run_folder(config.output, config.name.empty() ? "compare" : config.name);
  config.output = folder;
  std::vector<RunRecord> records;
  std::vector<std::string> names;
  for (std::int64_t seed = config.seed; seed < config.seed + options.seeds; ++seed) {
    std::vector<float> baseline_gradient;
    for (const auto& recipe : recipes) {
      const bool is_baseline = recipe == options.baseline;
      const RunConfig c = config_of(config, recipe, options, seed);
      log::info("run {} of {}: {}", records.size() + 1, recipes.size() * std::size_t(options.seeds), c.name);
      Outcome outcome;
      try {
        Trainer trainer(c, corpus, {.console = options.console, .keep_first_gradient = is_baseline, .checkpoints = false,
                                    .baseline_gradient = is_baseline ? nullptr : &baseline_gradient, .baseline = options.baseline});
        if (seed == config.seed) log::info("{}", plan_text(trainer.plan().plan));
        outcome = trainer.run();
      } catch (const DivergedError& e) {
        if (is_baseline) throw;
        log::warn("{}", e.what());
      }
      if (is_baseline) baseline_gradient = std::move(outcome.first_gradient);
      records.push_back(read_run(folder + "/" + c.name));
      names.push_back(c.name);
      if (outcome.state == RunState::stopped) throw Error(ExitCode::interrupted, format("stopped by a signal; what is done stands in {}", folder));
    }
  }
  CompareOutcome out{folder, compare_runs(records, options.baseline, options.tolerance)};
  out.comparison.runs = names;
  write_comparison(folder + "/compare.json", out.comparison);
  write_report(folder + "/report.html", records, &out.comparison);
  return out;
}

}  // namespace octet::train
