#include "octet/train/compare.hpp"

#include <algorithm>

#include "octet/base/log.hpp"
#include "octet/base/output.hpp"
#include "octet/cli/run_options.hpp"
#include "octet/cli/signals.hpp"

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

train::StudyConfig study_of(const Options& o) {
  if (o.fp8_given) throw ConfigError("--fp8 is no option of compare: --recipes says which recipes are compared, --baseline with which");
  std::vector<std::string> recipes = o.compare.recipes;
  recipes.push_back(o.compare.baseline);
  train::StudyConfig study{o.config(recipes), o.compare};
  study.compare.tolerance = share_of("--tolerance", o.tolerance);
  return study;
}

// A resumed comparison is what it was: nothing of it can be said anew.
void require_nothing_else(const std::vector<std::string>& given) {
  std::string others;
  for (const std::string& name : given)
    if (name != "--resume" && name != "--quiet") others += (others.empty() ? "" : ", ") + printable(name);
  if (!others.empty())
    throw ConfigError(format("--resume goes on with what its folder's {} says; leave out {}", train::Study::file_name, others));
}

ExitCode compare_recipes(const Options& o, const std::vector<std::string>& given) {
  const bool resume = std::find(given.begin(), given.end(), "--resume") != given.end();
  if (resume) require_nothing_else(given);
  if (o.quiet) log::set_quiet(true);
  heed_signals();
  const auto console = o.quiet ? train::Console::Kind::quiet : train::Console::Kind::automatic;
  const train::CompareOutcome outcome = resume ? train::resume_compare(o.resume, console) : train::compare(study_of(o), console);
  output::print("{}\nreport: {}/report.html\n", table_text(outcome.comparison), outcome.folder);
  return outcome.comparison.all_within() ? ExitCode::done : ExitCode::gap;
}

}  // namespace

void add_compare(Program& program) {
  auto o = std::make_shared<Options>();
  o->compare.recipes = compared_recipes();
  Command command =
      program.command("compare", "Train several recipes from the same weights on the same data, and show how they differ",
                      "  octet compare --data data/docs --max-time 5m\n"
                      "  octet compare run.toml --recipes current,block128 --seeds 3 --tolerance 0.5%\n"
                      "  octet compare --resume runs/compare        goes on after a crash or Ctrl-C\n"
                      "Exit code 3: the loss of a recipe is further from the baseline's than --tolerance and the seed spread allow.");
  o->add_to(command);
  command.option("--recipes", o->compare.recipes, "recipes to compare with the baseline", ',');
  command.option("--baseline", o->compare.baseline, "recipe that the others are held against: bf16 or fp32", {.one_of = {"bf16", "fp32"}});
  command.option("--seeds", o->compare.seeds, "runs of each recipe, each with another seed", {.at_least = 1, .at_most = 100});
  command.option("--tolerance", o->tolerance, "gap in loss that passes, such as 0.005 or 0.5%");
  command.option("--resume", o->resume, "go on with the comparison in this folder; what is compared stands there");
  command.flag("--quiet", o->quiet, "no progress: print warnings and the table only");
  command.run([o, command] { return compare_recipes(*o, command.given()); });
}

}  // namespace octet::cli
