#include "octet/train/study/compare.hpp"

#include <algorithm>
#include <memory>

#include "octet/base/clock.hpp"
#include "octet/base/log.hpp"
#include "octet/machine/machine.hpp"
#include "octet/telemetry/report/report.hpp"
#include "octet/telemetry/run_record.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/study/first_gradient.hpp"
#include "octet/train/study/study_hook.hpp"
#include "octet/train/run/config/open_corpus.hpp"
#include "octet/train/run/folder/gemm_algorithms_file.hpp"
#include "octet/train/run/folder/run_folder.hpp"
#include "octet/train/run/ranks/stop.hpp"
#include "octet/train/step/step.hpp"
#include "octet/train/step/weights.hpp"
#include "octet/train/run/trainer.hpp"

namespace octet::train {
namespace {

// Each arm, and each twin, with the first seed.
std::vector<StudyRun> of_each_arm(const StudyConfig& study) {
  std::vector<StudyRun> out = study.runs();
  std::erase_if(out, [&](const StudyRun& run) { return run.seed != study.run.seed; });
  return out;
}

[[noreturn]] void stopped_while_timing() {
  throw Error(ExitCode::interrupted, "stopped by a signal while the arms were timed, before the first run; give the same command again");
}

// Seconds to evaluate a batch, by the second time: the first also touches its memory for the first time.
double seconds_of_batch(Engine& engine, const data::Batch& batch, StudyRanks& ranks) {
  double begin = 0;
  for (int i = 0; i < 2; ++i) {
    if (ranks.any(stop_requested())) stopped_while_timing();
    begin = monotonic_seconds();
    evaluate_batch(engine, batch);
  }
  return monotonic_seconds() - begin;
}

// Seconds that one step of each arm takes, and one evaluation of each, together: two steps, the second one counts.
struct Cost {
  double step = 0, evaluation = 0;
  double last = 0;  // evaluations at the end, of averaged weights too
};
Cost measure_cost(const StudyConfig& study, const Corpus& corpus, StudyRanks& ranks) {
  Cost cost;
  comm::Communicator& all = ranks.all();
  for (const StudyRun& run : of_each_arm(study)) {
    const RunConfig c = study.config_of(run);
    require_kind(corpus, c);
    const Device device = machine::device_named(c.device);
    Engine engine(engine_config(c), device, machine::machine_target(device, c.deterministic), &all);
    data::Loader loader(
        corpus.training(),
        {.rows = c.train.batch, .stride = c.train.batch * all.size(), .offset = c.train.batch * all.rank(), .seed = std::uint64_t(c.seed)});
    engine.initialize(std::uint64_t(c.seed));
    StepRunner runner(engine);
    for (int i = 0; i < 2; ++i) {
      std::vector<data::Batch> micro_batches;
      for (std::int64_t m = 0; m < c.train.accumulate; ++m) micro_batches.push_back(loader.next());
      const double begin = monotonic_seconds();
      if (ranks.any(stop_requested())) stopped_while_timing();
      if (!runner.run(micro_batches, {.stopped = ranks.stopped_in_step()})) stopped_while_timing();
      wait(engine.stream);
      if (i == 1) cost.step += monotonic_seconds() - begin;
    }
    const auto held_out = corpus.held_out(c.train.batch);
    if (!held_out) continue;
    const double seconds =
        double(ceil_div(std::int64_t(held_out->size()), std::int64_t(all.size()))) * seconds_of_batch(engine, (*held_out)[0], ranks);
    cost.evaluation += seconds, cost.last += (c.train.average > 0 ? 2 : 1) * seconds;
  }
  return cost;
}

// The number of steps with which all runs and their evaluations end within max_seconds.
std::int64_t steps_within(const StudyConfig& study, const Corpus& corpus, StudyRanks& ranks) {
  const double begin = monotonic_seconds();
  Cost cost = measure_cost(study, corpus, ranks);
  double spent = monotonic_seconds() - begin;
  for (double* seconds : {&cost.step, &cost.evaluation, &cost.last, &spent})
    *seconds = 1e-9 * double(ranks.of_first(std::int64_t(1e9 * *seconds)));
  const LoopConfig& loop = study.run.train;
  const double every = loop.eval_every > 0 ? double(loop.eval_every) : 1e9;
  const double budget = (loop.max_seconds * 0.95 - spent) / double(study.compare.seeds) - cost.last;
  const double steps = budget / (cost.step + cost.evaluation / every);
  if (steps < 1)
    throw ConfigError(
        format("--max-time {} is too short: one step of all {} runs of a seed takes {} s, their evaluation {} s; allow more time, compare "
               "fewer arms or seeds, or lower train.eval_tokens",
               telemetry::duration_text(loop.max_seconds), of_each_arm(study).size(), fixed(cost.step, 1), fixed(cost.last, 1)));
  return std::int64_t(steps);
}

void require_possible(const RunConfig& c, Device device, const StudyRanks& ranks) {
  if (!c.model.init.empty()) require_weights(io::TensorFolder::open(c.model.init), engine_config(c));
  const DryRun dry = dry_run(engine_config(c), machine::machine_target(device, c.deterministic), c.train.batch, c.train.accumulate,
                             {.workspace = comm::workspace_of(ranks.placement().backend)});
  require_native(dry, c.recipe);
  require_eight_bits(dry, c.recipe);
  require_memory(dry, machine::available_bytes(device, ranks.placement().here), c.train);
}

// Refuses an arm that this machine cannot run before hours are spent on the others.
void require_possible(const StudyConfig& study, const StudyRanks& ranks) {
  const Device device = machine::device_named(study.run.device);
  for (const StudyRun& run : of_each_arm(study)) {
    try {
      require_possible(study.config_of(run), device, ranks);
    } catch (const Error& e) {
      throw Error(e.code(), format("arm {}: {}", run.arm, e.what()));
    }
  }
}

// Puts the number of steps of every run in the place of all else that bounds them.
void fix_steps(StudyConfig& study, const Corpus& corpus, StudyRanks& ranks) {
  LoopConfig& loop = study.run.train;
  const std::int64_t wanted = study.run.steps();
  loop.steps = wanted;
  if (loop.max_seconds == 0) return;
  log::info("timing one step of each arm");
  const std::int64_t possible = steps_within(study, corpus, ranks);
  loop.steps = wanted > 0 ? std::min(wanted, possible) : possible;
  loop.max_seconds = 0;
  log::info("{} steps of {} tokens for each of {} runs", loop.steps, grouped(study.run.tokens_per_step()), study.runs().size());
}

[[noreturn]] void stopped(const Study& study) {
  throw Error(ExitCode::interrupted, format("stopped by a signal; octet compare --resume {} continues", printable(study.folder())));
}

// call(); its errors about damaged files of a run name the remedy.
template <class Call>
auto with_files_of(const Study& study, const StudyRun& run, Call call) {
  return with_remedy(format("or remove {}, which --resume then trains again", printable(study.folder_of(run))), call);
}

// From its beginning, or from where it was stopped, to its end.
void train(const Study& study, const StudyRun& run, const Corpus& corpus, Console::Kind console, StudyRanks& ranks) {
  if (ranks.any(stop_requested())) stopped(study);
  StudyHook hook(study, run);
  TrainOptions options{.console = console, .save_finished = false, .hook = &hook};
  options.ranks = &ranks.all(), options.ranks_here = ranks.placement().here, options.backend = ranks.placement().backend;
  if (ranks.first_finds([&] { return study.has_begun(run); })) options.resume = study.folder_of(run);
  // Its first step needs the baseline's gradient: refused now rather than after the model is made.
  ranks.first_works([&] {
    if (options.resume.empty() && !hook.baseline_folder().empty()) read_first_gradient(hook.baseline_folder());
  });
  const RunConfig config = stored_model(study.config_of(run), study.folder_of(run));
  const auto trainer = with_files_of(study, run, [&] { return std::make_unique<Trainer>(config, corpus, options); });
  if (run.seed == study.config().run.seed) log::info("{}", plan_text(trainer->plan().plan));
  try {
    if (trainer->run().state == telemetry::RunState::stopped) stopped(study);
  } catch (const DivergedError& e) {
    log::warn("{}", e.what());
  }
}

// Runs the rest of a study; `corpus` may be null when no run is left.
CompareOutcome carry_out(const Study& study, const Corpus* corpus, Console::Kind console, StudyRanks& ranks) {
  const std::vector<StudyRun> runs = study.config().runs();
  CompareOutcome out{study.folder(), {}};
  std::vector<telemetry::RunRecord> records;
  std::vector<std::string> names;
  for (const StudyRun& run : runs) {
    const bool over = ranks.first_finds([&] { return with_files_of(study, run, [&] { return study.is_over(run); }); });
    log::info("run {} of {}: {}{}", names.size() + 1, runs.size(), run.name, over ? " is over" : "");
    if (!over) train(study, run, *corpus, console, ranks);
    ranks.first_works([&] {
      records.push_back(with_files_of(study, run, [&] { return telemetry::read_run(study.folder_of(run)); }));
      names.push_back(run.name);
      study.clear(run);
    });
    const auto failed = [&] { return study.is_baseline(run) && records.back().facts.state == telemetry::RunState::diverged; };
    if (!ranks.first_finds(failed)) continue;
    ranks.first_works([&] { telemetry::write_report(study.folder() + "/report.html", records); });
    if (!ranks.leads()) return out;
    throw DivergedError(
        format("run {}, the baseline, diverged, and nothing can be compared with it; see the incidents in {}/metrics.jsonl, "
               "and begin a new comparison with a lower optim.learning_rate",
               run.name, printable(study.folder_of(run))));
  }
  ranks.first_works([&] {
    out.comparison = telemetry::compare_runs(records, study.config().compare.baseline, study.config().compare.tolerance);
    out.comparison.runs = names;
    telemetry::write_comparison(study.folder() + "/compare.json", out.comparison);
    telemetry::write_report(study.folder() + "/report.html", records, &out.comparison);
  });
  return out;
}

}  // namespace

CompareOutcome compare(StudyConfig asked, Console::Kind console, const CompareRanks& on) {
  asked.runs();  // arms that cannot be are refused before the data is read
  StudyRanks ranks(on, asked.run.device);
  ranks.count_in(asked.run);
  const auto corpus = open_corpus(asked.run, ranks.all());
  require_possible(asked, ranks);
  fix_steps(asked, *corpus, ranks);
  asked.compare.text = to_text(corpus->fingerprint());
  std::optional<Study> study;
  ranks.first_works([&] { study = Study::begin(asked); });
  const std::string folder = ranks.of_first(study ? study->folder() : "");
  if (!study) study = Study::attend(folder);
  return carry_out(*study, &*corpus, console, ranks);
}

CompareOutcome resume_compare(const std::string& folder, Console::Kind console, const CompareRanks& on) {
  Study study = Study::attend(folder);
  const RunConfig& asked = study.config().run;
  StudyRanks ranks(on, asked.device);
  ranks.first_works([&] { study.hold(); });
  const std::vector<StudyRun> runs = study.config().runs();
  const auto over = [&](const StudyRun& run) { return with_files_of(study, run, [&] { return study.is_over(run); }); };
  if (ranks.first_finds([&] { return std::ranges::all_of(runs, over); })) return carry_out(study, nullptr, console, ranks);
  const auto corpus = open_corpus(asked, ranks.all());
  if (to_text(corpus->fingerprint()) != study.config().compare.text)
    throw DataError(format("data.path = \"{}\" holds another text than the one that the comparison in {} began with; put that one there",
                           printable(asked.data.path), printable(study.folder())));
  // Runs that come later multiply as the earlier ones did.
  for (const StudyRun& run : runs) replay_gemm_algorithms(study.folder_of(run), machine::device_named(asked.device));
  return carry_out(study, &*corpus, console, ranks);
}

}  // namespace octet::train
