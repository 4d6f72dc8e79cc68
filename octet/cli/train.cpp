#include "octet/cli/run_options.hpp"
#include "octet/base/log.hpp"
#include "octet/telemetry/report/report.hpp"
#include "octet/telemetry/run_record.hpp"
#include "octet/train/run_folder.hpp"
#include "octet/train/trainer.hpp"

namespace octet::cli {
namespace {

struct Options : RunOptions {
  bool quiet = false;
};

ExitCode train_model(const Options& o) {
  if (o.quiet) log::set_quiet(true);
  const train::RunConfig config = o.config();
  const train::Corpus corpus(config.data, config.train, config.model.shape().vocabulary);
  train::Trainer trainer(config, corpus, {.console = o.quiet ? train::Console::Kind::quiet : train::Console::Kind::automatic});
  log::info("{} parameters, {} of memory, {} GFLOP a step", grouped(trainer.plan().parameters), bytes_text(double(trainer.plan().memory.total)),
            fixed(trainer.plan().step.flops / 1e9, 1));
  log::info("{}", train::plan_text(trainer.plan().plan));
  const train::Outcome outcome = trainer.run();
  const std::vector<RunRecord> runs{read_run(outcome.folder)};
  write_report(outcome.folder + "/report.html", runs);
  std::printf("%s: %lld steps, train loss %.4f, eval loss %.4f, %s tok/s, %lld skipped; report %s/report.html\n", outcome.end.reason.c_str(),
              static_cast<long long>(outcome.end.step), outcome.end.train_loss, outcome.end.eval_loss,
              grouped(static_cast<long long>(outcome.end.tokens_per_second)).c_str(), static_cast<long long>(outcome.end.skipped), outcome.folder.c_str());
  return outcome.state == RunState::stopped ? ExitCode::interrupted : ExitCode::done;
}

}  // namespace

void add_train(Program& program) {
  auto o = std::make_shared<Options>();
  Command command = program.command("train", "Train a model",
                                  "  octet train --data data/docs --steps 200            BF16, the tiny demo model\n"
                                  "  octet train --data data/docs --steps 200 --fp8      the same in FP8\n"
                                  "  octet train run.toml --fp8 mxfp8 --max-time 1h      a configuration, another recipe, an hour\n"
                                  "  octet train run.toml --set optim.learning_rate=1e-3 --set recipe.last=1");
  o->add_to(command);
  command.flag("--quiet", o->quiet, "print the last line only");
  command.run([o] { return train_model(*o); });
}

}  // namespace octet::cli
