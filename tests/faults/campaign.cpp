#include "tests/faults/campaign.hpp"

#include <algorithm>
#include <filesystem>

#include "octet/base/check.hpp"
#include "octet/comm/threads/threads.hpp"
#include "octet/config/read.hpp"
#include "octet/scaling/recipe.hpp"
#include "octet/telemetry/run_record.hpp"
#include "octet/train/checkpoint/store.hpp"
#include "octet/train/run/checkpoints/resume.hpp"

namespace octet::faults {
namespace {
namespace fs = std::filesystem;
using telemetry::AlertEvent;

/// A run of the campaign before its folder is read.
struct Run {
  train::RunConfig config;
  std::string resume{};
  const Fault* fault = nullptr;
  Target target{};
};

/// The end of a run: its record, and the harm that was done to it.
struct Ran {
  std::string folder;
  telemetry::RunRecord record;
  Damage damage{};
};

// The first step from `begin` on in which a maximum of a layer did not fit its scale; `begin` if there is none.
std::int64_t first_clipped(const telemetry::RunRecord& r, const std::string& layer, std::int64_t begin) {
  for (const telemetry::ScalesEvent& e : r.scales)
    for (std::size_t i = 0; i < e.amax.size(); ++i) {
      const telemetry::QuantizerFacts& q = r.facts.quantizers[i];
      if (e.step < begin || q.path != layer || q.operand == "w") continue;
      const double largest = format_max(q.format == name(DType::e4m3) ? DType::e4m3 : DType::e5m2);
      if (double(e.amax[i]) * double(e.scale_min[i]) > largest) return e.step;
    }
  return begin;
}

class Campaign {
 public:
  Campaign(const CampaignOptions& options, const std::function<void(const Trial&)>& report) : options_(options), report_(report) {}

  std::vector<Trial> run() {
    for (const std::int64_t seed : options_.seeds)
      for (const auto& entry : scaling::recipes()) run_recipe(std::string(entry.name), seed);
    return trials_;
  }

 private:
  bool wanted(const std::string& name) const { return options_.faults.empty() || std::ranges::count(options_.faults, name) > 0; }
  std::vector<const Fault*> faults_of(const std::string& recipe) const {
    std::vector<const Fault*> out;
    if (!options_.recipes.empty() && std::ranges::count(options_.recipes, recipe) == 0) return out;
    for (const Fault& f : faults())
      if (wanted(f.name) && (f.recipes.empty() || std::ranges::count(f.recipes, recipe) > 0)) out.push_back(&f);
    return out;
  }

  void run_recipe(const std::string& recipe, std::int64_t seed) {
    const std::vector<const Fault*> all = faults_of(recipe);
    if (all.empty()) return;
    train::RunConfig config = options_.config;
    config.recipe.recipe = recipe, config.seed = seed, config.name = "undisturbed";
    config.checkpoint.every = checkpoint_step(), config.checkpoint.keep = config.train.steps;
    const Ran undisturbed = ran({.config = config});
    for (const Fault* f : all) run_fault(*f, config, undisturbed);
    fs::remove_all(undisturbed.folder);
  }

  void run_fault(const Fault& f, const train::RunConfig& config, const Ran& undisturbed) {
    Trial trial{.fault = f.name, .recipe = config.recipe.recipe, .seed = config.seed};
    const Ran off = disturbed(f, config, undisturbed);
    describe(trial, f, off);
    trial.off = ending(off, undisturbed);
    if (!options_.act.empty() && f.scored && f.ranks == 1) {
      train::RunConfig acting = config;
      config::Origins origins;
      for (const std::string& assignment : options_.act) config::apply_override(acting, assignment, origins);
      trial.act = ending(disturbed(f, acting, undisturbed), undisturbed);
    }
    report_(trial);
    trials_.push_back(std::move(trial));
  }

  // The last step before the fault is repeated: weights change at its end.
  std::int64_t checkpoint_step() const { return options_.begin - 2; }
  Target target_of(const Fault& f) const { return {f.from_step < 0 ? options_.begin : f.from_step, options_.layer}; }

  Ran disturbed(const Fault& f, train::RunConfig config, const Ran& undisturbed) const {
    config.name = f.name;
    f.configure(config);
    Run run{.config = config, .fault = &f, .target = target_of(f)};
    if (run.target.step == options_.begin && f.ranks == 1 && f.disturbance)
      run.resume = copy_until(undisturbed.folder, f.name, checkpoint_step());
    Ran out = ran(run);
    if (!options_.keep) fs::remove_all(out.folder);
    return out;
  }

  // With the checkpoint of that step as the newest.
  static std::string copy_until(const std::string& folder, const std::string& name, std::int64_t step) {
    std::string copy = folder + "-" + name;
    while (fs::exists(copy)) copy += "-act";
    fs::copy(folder, copy, fs::copy_options::recursive);
    const train::CheckpointStore store(train::checkpoint_folder(copy));
    for (const std::int64_t s : store.steps())
      if (s > step) fs::remove_all(store.path(s));
    return copy;
  }

  Ran ran(const Run& run) const {
    const int ranks = run.fault == nullptr ? 1 : run.fault->ranks;
    Ran out;
    const auto train_here = [&](comm::Communicator* c) {
      const train::Corpus corpus(run.config.data, run.config.train, run.config.model.shape().vocabulary);
      const bool disturbs = run.fault != nullptr && run.fault->disturbance && (c == nullptr || c->rank() == ranks - 1);
      const std::unique_ptr<Disturbance> harm = disturbs ? run.fault->disturbance(run.target) : nullptr;
      train::Trainer trainer(run.config, corpus,
                             {.console = train::Console::Kind::quiet,
                              .save_weights = false,
                              .save_finished = false,
                              .resume = run.resume,
                              .ranks = c,
                              .ranks_here = ranks,
                              .hook = harm.get()});
      if (c == nullptr || c->rank() == 0) out.folder = trainer.folder();
      try {
        trainer.run();
      } catch (const DivergedError&) {  // the record tells
      }
      check(!disturbs || harm->done(), "the fault {} was not injected", run.config.name);
      if (disturbs) out.damage = harm->damage();
    };
    if (ranks == 1) train_here(nullptr);
    else comm::run_on_threads({.ranks = ranks, .limit_seconds = 600}, [&](comm::Communicator& c) { train_here(&c); });
    out.record = telemetry::read_run(out.folder);
    return out;
  }

  void describe(Trial& t, const Fault& f, const Ran& run) const {
    const std::string right = f.tensor(options_.layer);
    std::int64_t begin = f.scored ? target_of(f).step : 1;
    if (f.from_clipping) begin = first_clipped(run.record, right, begin);
    t.damage = run.damage;
    for (const AlertEvent& a : run.record.alerts) {
      if (a.step < begin || a.severity == telemetry::Severity::info) continue;
      if (t.delay < 0) t.rule = a.rule, t.delay = a.step - begin;
      if (t.tensor.empty()) t.tensor = a.path;
      if (std::ranges::count(t.rules, a.rule) == 0) t.rules.push_back(a.rule);
    }
    describe_tensor(t, right, run.record, begin);
  }

  static void describe_tensor(Trial& t, const std::string& right, const telemetry::RunRecord& r, std::int64_t begin) {
    if (right.empty()) return;
    const auto& all = r.facts.quantizers;
    const auto measured =
        std::ranges::find_if(all, [&](const telemetry::QuantizerFacts& q) { return (q.path + "." + q.operand).starts_with(right); });
    const bool of_operand = right.starts_with("layers.");
    if (of_operand && measured == all.end()) return;
    t.named = t.tensor.starts_with(right) ? Named::right : Named::wrong;
    if (!of_operand) return;
    const std::size_t at = std::size_t(measured - all.begin());
    for (const telemetry::HealthEvent& h : r.health) {
      const double sqnr = h.sqnr_db.at(at);
      if (h.step < begin) t.recorded_before = sqnr;
      else if (h.step == begin) t.recorded = sqnr;
      else if (h.step <= begin + wanted_delay) t.recorded_after = std::fmin(t.recorded_after, sqnr);
    }
  }

  static Ending ending(const Ran& run, const Ran& undisturbed) {
    Ending e{.ran = true, .state = to_text(run.record.facts.state)};
    if (run.record.end) e.loss = run.record.end->eval_loss, e.skipped = run.record.end->skipped;
    if (undisturbed.record.end) e.gap = e.loss / undisturbed.record.end->eval_loss - 1;
    for (const telemetry::RecoveryEvent& r : run.record.recoveries) {
      if (r.result != "done" && r.result != "recovered") continue;
      const std::string action = r.result == "done" ? r.rung : r.result;
      if (e.actions.empty() || e.actions.back() != action) e.actions.push_back(action);
    }
    return e;
  }

  const CampaignOptions& options_;
  const std::function<void(const Trial&)>& report_;
  std::vector<Trial> trials_;
};

}  // namespace

train::RunConfig campaign_config(train::RunConfig config) {
  config.train.max_seconds = 0, config.train.save_weights = false, config.threads = 1, config.device = "cpu";
  for (const char* rule : {"throughput", "memory", "disk", "checkpoint_age"}) config.alerts.set_threshold(rule, 0);
  return config;
}

std::vector<Trial> run_campaign(const CampaignOptions& options, const std::function<void(const Trial&)>& report) {
  for (const std::string& name : options.faults) fault(name);
  for (const std::string& recipe : options.recipes) scaling::make_recipe(recipe, {});
  return Campaign(options, report).run();
}

}  // namespace octet::faults
