#include "octet/train/study/compare.hpp"

#include <algorithm>

#include "octet/base/log.hpp"
#include "octet/base/output.hpp"
#include "octet/cli/run_options.hpp"
#include "octet/cli/signals.hpp"
#include "octet/cli/rank_run.hpp"
#include "octet/telemetry/findings.hpp"
#include "octet/train/run/ranks/rank_wish.hpp"
#include "octet/train/study/idle_options.hpp"

namespace octet::cli {
namespace {

struct Options : RunOptions {
  train::CompareConfig compare;
  std::string tolerance = "0.5%", resume;
  bool quiet = false;
};

double share_of(const std::string& option, const std::string& text) {
  const bool percent = text.ends_with('%');
  const auto number = parse_number(percent ? text.substr(0, text.size() - 1) : text);
  if (!number || !(*number >= 0 && *number < 1e9))
    throw ConfigError(format("{} \"{}\": a share is written 0.005 or 0.5%", option, printable(text)));
  return percent ? *number / 100 : *number;
}

// An 8-bit recipe is no baseline, unless it was named as an arm for that.
void require_baseline(const train::StudyConfig& study) {
  const std::string& baseline = study.compare.baseline;
  const auto named = [&](const std::string& arm) { return arm.starts_with(baseline + ":"); };
  if (baseline == "bf16" || baseline == "fp32" || std::any_of(study.compare.arms.begin(), study.compare.arms.end(), named)) return;
  throw ConfigError(format("--baseline \"{}\": must be bf16, fp32 or the name of an --arm", printable(baseline)));
}

// --arm without --recipes compares the arms alone.
train::StudyConfig study_of(const Options& o, bool recipes_given) {
  if (o.fp8_given) throw ConfigError("--fp8 is not an option of compare: select the recipes with --recipes, the baseline with --baseline");
  train::StudyConfig study{{}, o.compare};
  if (!o.compare.arms.empty() && !recipes_given) study.compare.recipes.clear();
  require_baseline(study);
  study.compare.tolerance = share_of("--tolerance", o.tolerance);
  study.arms();  // bad ones are refused before the configuration is read
  const train::RunConfig defaults = train::comparable_defaults();
  config::Origins origins;
  study.run = o.config(defaults, origins);
  for (const auto& sentence : train::idle_options(study, defaults, origins)) log::warn("{}", sentence);
  return study;
}

// A resumed comparison cannot change its options.
void require_nothing_else(const std::vector<std::string>& given) {
  std::string others;
  for (const std::string& name : given)
    if (name != "--resume" && name != "--quiet") others += (others.empty() ? "" : ", ") + printable(name);
  if (!others.empty())
    throw ConfigError(format("--resume uses the options stored in the folder's {}; remove {}", train::Study::file_name, others));
}

// One of several ranks. The first one prints; all of them end by the same signal.
ExitCode compare_on(const Options& o, const train::StudyConfig& study, const train::CompareRanks& ranks) {
  const auto console = o.quiet ? train::Console::Kind::quiet : train::Console::Kind::automatic;
  const bool leads = ranks.ranks->rank() == 0;
  train::CompareOutcome outcome;
  try {
    outcome = o.resume.empty() ? train::compare(study, console, ranks) : train::resume_compare(o.resume, console, ranks);
  } catch (const Error& e) {
    if (leads || e.code() != ExitCode::interrupted) throw;
    return e.code();
  }
  if (!leads) return ExitCode::done;
  output::print("{}\nreport: {}/report.html\n{}\n", telemetry::table_text(outcome.comparison), outcome.folder,
                telemetry::findings(outcome.comparison));
  return outcome.comparison.passes() ? ExitCode::done : ExitCode::gap;
}

ExitCode compare_recipes(const Options& o, const std::vector<std::string>& given) {
  const auto is_given = [&](const char* option) { return std::find(given.begin(), given.end(), option) != given.end(); };
  const bool resume = is_given("--resume");
  if (resume) require_nothing_else(given);
  if (o.quiet) log::set_quiet(true);
  machine::choose_own_gpu();
  const train::StudyConfig study = resume ? train::Study::attend(o.resume).config() : study_of(o, is_given("--recipes"));
  heed_signals();
  return run_on_ranks(train::rank_wish(study.run), [&](comm::Communicator& ranks, const machine::RankPlacement& placement) {
    return compare_on(o, study, {&ranks, placement});
  });
}

}  // namespace

void add_compare(Program& program) {
  auto o = std::make_shared<Options>();
  o->compare.recipes = scaling::compared_recipes();
  Command command = program.command(
      "compare", "Train several configurations from the same weights on the same data, and judge the differences of their losses",
      "  octet compare --data data/docs --max-time 5m\n"
      "  octet compare run.toml --recipes current,block128 --seeds 5 --tolerance 0.5%\n"
      "  octet compare run.toml --seeds 5 --arm 'slow: recipe.name=current, optim.learning_rate=1e-3'\n"
      "  octet compare --resume runs/compare        resumes after a crash or Ctrl-C\n"
      "Defaults other than those of octet train: optim.learning_rate = 1e-3, optim.schedule.final_ratio = 0, train.eval_tokens = 32768.\n"
      "Exit code 3: an arm diverged, or its loss is over the baseline's by more than --tolerance and the seeds resolve that.");
  o->add_to(command);
  command.option("--recipes", o->compare.recipes, "arms that differ from the baseline by recipe alone", ',');
  command.option("--arm", o->compare.arms,
                 "an arm with any keys, 'name: key=value, key=value'; may be repeated; then --recipes has no default");
  command.option("--baseline", o->compare.baseline, "arm that the others are compared with: bf16, fp32, or the name of an --arm");
  command.option("--seeds", o->compare.seeds, "runs per arm, each with another seed; fewer than 3 resolve nothing",
                 {.at_least = 1, .at_most = 100});
  command.option("--twins", o->compare.twins, "twins of the baseline per seed, whose first weights differ in their last bit",
                 {.at_least = 0, .at_most = telemetry::most_twins});
  command.option("--tolerance", o->tolerance, "gap in loss that passes, such as 0.005 or 0.5%");
  command.option("--resume", o->resume, "resume the comparison in this folder, with the options stored there");
  command.flag("--quiet", o->quiet, "no progress: print warnings and the result only");
  command.run([o, command] { return compare_recipes(*o, command.given()); });
}

}  // namespace octet::cli
