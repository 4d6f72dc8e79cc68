#include "octet/cli/run_options.hpp"

#include <cstdlib>
#include <filesystem>

#include "octet/base/log.hpp"
#include "octet/scaling/recipe.hpp"
#include "octet/train/idle_options.hpp"

namespace octet::cli {

void RunOptions::add_to(Command& command) {
  command.positional("config", file, "configuration, a TOML file; without it, defaults and the options below", false);
  command.optional_value("--fp8", fp8_given, fp8, format("train in FP8, by this recipe or, without a name, by {}", default_fp8_recipe));
  command.option("--data", data, "token folder, as octet tokenize makes it (data.path)");
  command.option("--steps", steps, "optimizer steps (train.steps)", {.at_least = 1});
  command.option("--tokens", tokens, "tokens to train on (train.tokens)", {.at_least = 1});
  command.option("--max-time", max_time, "wall time, such as 90s, 5m or 1h30m (train.max_seconds)");
  command.option("--output", output, "folder for run folders (output)");
  command.option("--name", name, "name of the run's folder (name)");
  command.option("--set", set, "one key of the configuration, such as optim.learning_rate=1e-3; may be repeated");
}

train::RunConfig RunOptions::config(const std::vector<std::string>& recipes, const train::RunConfig& defaults) const {
  train::RunConfig c = defaults;
  config::Origins origins;
  if (!file.empty() && !std::filesystem::exists(file))
    throw ConfigError(format("there is no configuration file {}; check the path, or leave it out and use options", printable(file)));
  if (!file.empty()) origins = config::read_toml_file(file, c);
  if (fp8_given) {
    c.recipe.recipe = fp8.empty() ? default_fp8_recipe : fp8;
    make_recipe(c.recipe.recipe, {});  // an unknown name is refused here, with the nearest one
  }
  if (!data.empty()) c.data.path = data;
  if (!output.empty()) c.output = output;
  if (!name.empty()) c.name = name;
  if (steps > 0) c.train.steps = steps;
  if (tokens > 0) c.train.tokens = tokens;
  if (!max_time.empty()) c.train.max_seconds = seconds_of("--max-time", max_time);
  for (const auto& assignment : set) config::apply_override(c, assignment, origins);
  for (const auto& sentence : train::idle_options(c, origins, recipes)) log::warn("{}", sentence);
  return c;
}

double seconds_of(const std::string& option, const std::string& text) {
  double total = 0;
  const char* at = text.c_str();
  const auto refuse = [&] { throw ConfigError(format("{} \"{}\": a time is written 90s, 5m or 1h30m", option, printable(text))); };
  if (*at == 0) refuse();
  while (*at != 0) {
    char* end = nullptr;
    const double number = std::strtod(at, &end);
    if (end == at || !(number >= 0)) refuse();
    const double unit = *end == 'h' ? 3600 : *end == 'm' ? 60 : *end == 's' || *end == 0 ? 1 : -1;
    if (unit < 0) refuse();
    total += number * unit;
    at = *end == 0 ? end : end + 1;
  }
  if (!(total > 0 && total < 1e9)) refuse();
  return total;
}

}  // namespace octet::cli
