#include <CLI/CLI.hpp>
#include <cstdio>

#include "octet/base/error.hpp"
#include "octet/base/log.hpp"
#include "octet/config/read.hpp"
#include "octet/data/tokenize.hpp"
#include "tests/faults/campaign.hpp"
#include "tests/faults/cost.hpp"
#include "tests/faults/healthy.hpp"
#include "tests/testing/scratch.hpp"

// Campaigns over alerts: faults that are injected into runs of the model of scripts/demo with half of its layers, healthy runs of the whole
// model, and the cost of alerts. One campaign per call: the first has another model.

namespace octet::faults {
namespace {

struct Options {
  bool all = false, json = false;
  std::vector<std::string> faults, recipes, set, act;
  std::string data, output;
  std::int64_t seeds = 3, steps = 100, begin = 70, layer = 1, healthy = 0, healthy_steps = 100, cost = 0;
  bool injects() const { return all || !faults.empty(); }
};

void add_options(CLI::App& app, Options& o) {
  app.add_flag("--all", o.all, "inject every fault");
  app.add_option("--fault", o.faults, "inject this one; may be repeated")->take_all();
  app.add_option("--recipe", o.recipes, "under this recipe alone; may be repeated")->take_all();
  app.add_option("--seeds", o.seeds, "runs per fault and recipe (3)");
  app.add_option("--steps", o.steps, "length of a run (100)");
  app.add_option("--begin", o.begin, "first disturbed step (70)");
  app.add_option("--layer", o.layer, "of the model, whose tensors are disturbed (1)");
  app.add_option("--act", o.act, "key=value of a second run of each fault, such as recovery.mode=act; may be repeated")->take_all();
  app.add_option("--healthy", o.healthy, "count the alerts of so many undisturbed runs");
  app.add_option("--healthy-steps", o.healthy_steps, "length of these (100)");
  app.add_option("--cost", o.cost, "measure the cost of alerts in so many blocks of steps");
  app.add_option("--set", o.set, "key=value of every run; may be repeated")->take_all();
  app.add_option("--data", o.data, "token folder; without it, 8 MB of the C and C++ headers of this machine");
  app.add_option("--output", o.output, "folder that keeps the run folders of faults; without it, they are removed");
  app.add_flag("--json", o.json, "print a JSON object per line");
}

train::RunConfig config_of(const Options& o, const testing::Scratch& scratch) {
  train::RunConfig config;
  config::Origins origins = config::read_toml_file(OCTET_SOURCE_DIR "/examples/demo.toml", config);
  config.data.path = o.data;
  if (o.data.empty()) {
    config.data.path = scratch.at("headers");
    data::TokenizeOptions tokenize;
    tokenize.max_bytes = 8'000'000, tokenize.threads = 1;
    data::tokenize({"/usr/include/**/*.h", "/usr/include/c++/**"}, config.data.path, tokenize);
  }
  if (o.healthy == 0 && o.cost == 0)
    config.model.layers = 3, config.data.sequence_length = 64, config.train.eval_tokens = 8192;  // shorter steps: there are many runs
  config.output = o.output.empty() ? scratch.at("runs") : o.output;
  config.train.max_seconds = 0, config.train.save_weights = false, config.threads = 1, config.device = "cpu";
  for (const std::string& assignment : o.set) config::apply_override(config, assignment, origins);
  return config;
}

// At once: a campaign that is stopped has told its trials.
void print(const json::Value& value) {
  std::printf("%s\n", value.dump(json::Layout::line, json::Invalid::replace).c_str());
  std::fflush(stdout);
}

std::string interval(const telemetry::PairedGap& g) {
  return format("{}% ± {}", fixed(100 * g.mean, 2), fixed(100 * telemetry::half_width(g, 0.95), 2));
}

void inject(const Options& o, train::RunConfig config) {
  config.train.steps = o.steps;
  CampaignOptions c{.config = campaign_config(config), .faults = o.faults, .recipes = o.recipes, .act = o.act, .begin = o.begin};
  c.layer = int(o.layer), c.keep = !o.output.empty(), c.seeds.clear();
  for (std::int64_t seed = 1; seed <= o.seeds; ++seed) c.seeds.push_back(seed);
  const std::vector<Trial> all = run_campaign(c, [&](const Trial& t) {
    if (o.json) print(to_json(t));
    std::fprintf(stderr, "%s\n", tables({t}).c_str());
  });
  if (!o.json) std::printf("%s\n%s", tables(all).c_str(), summary(all).c_str());
}

void count_alerts(const Options& o, train::RunConfig config) {
  config.train.steps = o.healthy_steps;
  const Healthy h = healthy_runs(config, o.healthy);
  if (o.json)
    return print(json::Object{{"runs", h.runs}, {"steps", h.steps}, {"warnings", h.warnings}, {"alerts", json::array_of(h.alerts)}});
  std::printf("%lld alerts of severity warning or higher in %lld runs of %lld steps\n", (long long)h.warnings, (long long)h.runs,
              (long long)h.steps);
  for (const std::string& line : h.alerts) std::printf("%s\n", line.c_str());
}

void measure_cost(const Options& o, const train::RunConfig& config) {
  const Cost c = alert_cost(config, o.cost);
  std::printf("%lld blocks of %lld steps per run; means and intervals of 95%%\n", (long long)c.blocks, (long long)c.block_steps);
  std::printf("alerts: %s of processor time, %s of wall time\n", interval(c.alerts.processor).c_str(), interval(c.alerts.wall).c_str());
  std::printf("train.health_every = 1: %s of processor time, %s of wall time\n", interval(c.every_step.processor).c_str(),
              interval(c.every_step.wall).c_str());
  std::printf("rules alone: %.1f us per step, %.4f%% of a step\n", c.rules_microseconds, 100 * c.rules_microseconds / c.step_microseconds);
}

int run(int argc, char** argv) {
  Options o;
  CLI::App app("Campaigns over alerts: injected faults, healthy runs, cost", "octet_faults");
  add_options(app, o);
  CLI11_PARSE(app, argc, argv);
  if (!o.injects() && o.healthy == 0 && o.cost == 0) return std::printf("%s", app.help().c_str()), 64;
  if (int(o.injects()) + int(o.healthy > 0) + int(o.cost > 0) > 1)
    throw ConfigError("faults, --healthy and --cost are campaigns of their own: run one per call");
  log::set_quiet(true);
  const testing::Scratch scratch;
  const train::RunConfig config = config_of(o, scratch);
  if (o.injects()) inject(o, config);
  if (o.healthy > 0) count_alerts(o, config);
  if (o.cost > 0) measure_cost(o, config);
  return 0;
}

}  // namespace
}  // namespace octet::faults

int main(int argc, char** argv) {
  try {
    return octet::faults::run(argc, argv);
  } catch (const octet::Error& e) {
    std::fprintf(stderr, "octet_faults: %s\n", e.what());
    return int(e.code());
  }
}
