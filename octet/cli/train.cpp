#include <algorithm>

#include "octet/cli/rank_run.hpp"
#include "octet/cli/run_options.hpp"
#include "octet/cli/signals.hpp"
#include "octet/base/log.hpp"
#include "octet/base/output.hpp"
#include "octet/base/path.hpp"
#include "octet/launch/run_note.hpp"
#include "octet/machine/machine.hpp"
#include "octet/parallel/long_work.hpp"
#include "octet/telemetry/report/report.hpp"
#include "octet/telemetry/run_record.hpp"
#include "octet/telemetry/step_line.hpp"
#include "octet/train/run/folder/foreign_folder.hpp"
#include "octet/train/run/checkpoints/resume.hpp"
#include "octet/train/run/config/open_corpus.hpp"
#include "octet/train/run/folder/run_folder.hpp"
#include "octet/train/study/study.hpp"
#include "octet/train/study/twin.hpp"
#include "octet/train/run/ranks/rank_wish.hpp"
#include "octet/train/run/trainer.hpp"

namespace octet::cli {
namespace {

// A run may resume on another number of ranks than its stored configuration has.
train::RunConfig on_started_ranks(RunOptions o) {
  const bool chosen = std::any_of(o.set.begin(), o.set.end(), [](const auto& s) { return s.starts_with("ranks.data"); });
  const std::int64_t started = machine::started_ranks();
  if (started > 0 && !chosen && o.written == config::Written::by_program) o.set.push_back("ranks.data=0");
  return o.config();
}

struct Options : RunOptions {
  bool quiet = false, resume = false;
  std::string resume_folder;
  std::int64_t trace = 0;

  // The folder of the run to resume, and its configuration: the stored one, changed by the command line.
  train::RunConfig resumed(std::string& folder) const {
    RunOptions options = *this;
    folder = resume_folder.empty() ? train::last_run_folder(config()) : resume_folder;
    if (!is_folder(folder)) throw ConfigError(format("--resume: there is no run folder {}; check the path", printable(folder)));
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    if (exists(folder + "/" + train::Study::file_name))
      throw ConfigError(
          format("--resume: {} is a comparison; resume it with octet compare --resume {}", printable(folder), printable(folder)));
    train::require_no_links(folder);
    if (options.file.empty()) options.file = folder + "/config.toml", options.written = config::Written::by_program;
    if (!exists(options.file))
      throw ConfigError(
          format("--resume: there is no {}, so {} is no run's folder; name that of a run", printable(options.file), printable(folder)));
    const train::RunConfig config = train::stored_model(on_started_ranks(options), folder);
    const bool named = std::any_of(set.begin(), set.end(), [](const auto& s) { return s.starts_with("alerts.command"); });
    if (options.written == config::Written::by_program && !named && config.alerts.enabled && !config.alerts.command.empty())
      train::require_own_command(folder, options.file, config.alerts.command);
    return config;
  }
};

ExitCode train_rank(const Options& o, const train::RunConfig& config, const std::string& folder, comm::Communicator& ranks,
                    const machine::RankPlacement& placement) {
  const auto corpus = train::open_corpus(config, ranks);
  train::Twin twin(config.seed, train::twin_of(folder));  // a resumed run may be one
  train::Trainer trainer(config, *corpus,
                         {.console = o.quiet ? train::Console::Kind::quiet : train::Console::Kind::automatic,
                          .resume = folder,
                          .trace_steps = o.trace,
                          .ranks = &ranks,
                          .ranks_here = placement.here,
                          .backend = placement.backend,
                          .hook = &twin});
  // The stream of an engine, which another one may replace while the run lasts.
  const auto of_first = [&](const std::function<void()>& work) { parallel::work_of_first(trainer.engine().stream, ranks, work); };
  of_first([&] { launch::note_run_folder(trainer.folder()); });
  if (ranks.size() > 1) log::info("{} ranks over {}", ranks.size(), placement.backend);
  log::info("{} parameters, {} of memory, {} GFLOP per step", grouped(trainer.plan().parameters),
            bytes_text(double(trainer.plan().memory.total)), fixed(trainer.plan().step.flops / 1e9, 1));
  log::info("{}", train::plan_text(trainer.plan().plan));
  const auto report = [&] {
    of_first([&] { telemetry::write_report(trainer.folder() + "/report.html", std::vector{telemetry::read_run(trainer.folder())}); });
  };
  const train::Outcome outcome = [&] {
    try {
      return trainer.run();
    } catch (const DivergedError&) {
      report();
      throw;
    }
  }();
  report();
  output::print("{}; report {}/report.html\n", telemetry::format_end_line(outcome.end), outcome.folder);
  if (outcome.state != telemetry::RunState::stopped) return ExitCode::done;
  log::info("resume with octet train --resume {}", outcome.folder);
  return ExitCode::interrupted;
}

ExitCode train_model(const Options& o) {
  if (o.quiet) log::set_quiet(true);
  machine::choose_own_gpu();
  std::string folder;
  const train::RunConfig config = o.resume ? o.resumed(folder) : o.config();
  heed_signals();
  return run_on_ranks(train::rank_wish(config), [&](comm::Communicator& ranks, const machine::RankPlacement& placement) {
    return train_rank(o, config, folder, ranks, placement);
  });
}

}  // namespace

void add_train(Program& program) {
  auto o = std::make_shared<Options>();
  Command command = program.command("train", "Train a model",
                                    "  octet train --data data/docs --steps 200            BF16, the tiny demo model\n"
                                    "  octet train --data data/docs --steps 200 --fp8      the same in FP8\n"
                                    "  octet train run.toml --fp8 mxfp8 --max-time 1h      a configuration, another recipe, an hour\n"
                                    "  octet train --resume runs/bf16                      resumes after a crash or Ctrl-C\n"
                                    "  octet train run.toml --set optim.learning_rate=1e-3 --set recipe.last=1",
                                    Result::file);
  o->add_to(command);
  command.optional_value("--resume", o->resume, o->resume_folder,
                         "resume the run in this folder; without a folder, the last run of this name");
  command.option(
      "--trace", o->trace,
      "steps to trace, from the 4th on, in trace.json of the run's folder (Chrome, Perfetto): kernels, copies and gaps of a GPU; parts of "
      "steps and collectives of CPU ranks",
      {.at_least = 1, .at_most = 100});
  command.flag("--quiet", o->quiet, "no progress: print warnings and the last line only");
  command.run([o] { return train_model(*o); });
}

}  // namespace octet::cli
