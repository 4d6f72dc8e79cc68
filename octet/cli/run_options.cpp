#include "octet/cli/run_options.hpp"

#include <cstdlib>

#include "octet/base/log.hpp"
#include "octet/base/path.hpp"
#include "octet/config/attributes.hpp"
#include "octet/scaling/recipe.hpp"
#include "octet/train/run/config/token_folders.hpp"

namespace octet::cli {

void RunOptions::add_to(Command& command) {
  command.positional("config", file, "configuration, a TOML file; without it, defaults and the options below", false);
  command.optional_value("--fp8", fp8_given, fp8, format("train in FP8, by this recipe or, without a name, by {}", default_fp8_recipe));
  command.option("--level", level, "storage of weights, gradients and moments: O0, O1, O2 or O3 (optim.level)");
  command.option("--init", init, "Hugging Face folder of a model to start from (model.init)");
  command.option("--data", data, "token folder, as octet tokenize makes it, or text files such as chat.jsonl (data.path)");
  command.option("--steps", steps, "optimizer steps (train.steps)", {.at_least = 1});
  command.option("--tokens", tokens, "tokens to train on (train.tokens)", {.at_least = 1});
  command.option("--max-time", max_time, "wall time, such as 90s, 5m or 1h30m (train.max_seconds)");
  command.option("--output", output, "folder for run folders (output)");
  command.option("--name", name, "name of the run's folder (name)");
  command.option("--set", set, "one key of the configuration, such as optim.learning_rate=1e-3; may be repeated");
}

namespace {

// An unknown name is refused with the nearest one; a file that follows --fp8 is taken for its value.
void require_recipe(const std::string& name) {
  if (name.ends_with(".toml") || (name.find('/') != std::string::npos && exists(name)))
    throw ConfigError(format("--fp8 {}: a recipe's name may follow --fp8; write the configuration before it: {} --fp8", printable(name),
                             printable(name)));
  if (!name.empty()) scaling::make_recipe(name, {});
}

}  // namespace

train::RunConfig RunOptions::config() const {
  config::Origins origins;
  const train::RunConfig c = config({}, origins);
  for (const auto& sentence : config::idle_options(c, train::RunConfig{}, origins)) log::warn("{}", sentence);
  return c;
}

train::RunConfig RunOptions::config(const train::RunConfig& defaults, config::Origins& origins) const {
  train::RunConfig c = defaults;
  if (!file.empty() && !exists(file))
    throw ConfigError(format("there is no configuration file {}; check the path, or leave it out and use options", printable(file)));
  if (is_folder(file))
    throw ConfigError(
        format("{} is a folder, and a configuration is a file; name tokens by --data {}, or a run's configuration, {}/config.toml",
               printable(file), printable(file), printable(file)));
  if (!file.empty()) origins = config::read_toml_file(file, c, written);
  const auto take = [&](const char* key, const std::string& text, const char* option) {
    if (!text.empty()) config::set_key(c, key, text, option, origins);
  };
  if (fp8_given) require_recipe(fp8);
  if (fp8_given) take("recipe.name", fp8.empty() ? default_fp8_recipe : fp8, "--fp8");
  take("optim.level", level, "--level"), take("model.init", init, "--init"), take("data.path", data, "--data"),
      take("output", output, "--output"), take("name", name, "--name");
  if (steps > 0) config::set_key(c, "train.steps", steps, "--steps", origins);
  if (tokens > 0) config::set_key(c, "train.tokens", tokens, "--tokens", origins);
  if (!max_time.empty()) config::set_key(c, "train.max_seconds", seconds_of("--max-time", max_time), "--max-time", origins);
  for (const auto& assignment : set) config::apply_override(c, assignment, origins);
  train::keep_conversations_apart(c, origins);
  return c;
}

std::vector<std::string> RunOptions::keys() const {
  config::Origins origins;
  config({}, origins);
  std::vector<std::string> out;
  for (const auto& [key, place] : origins) out.push_back(key);
  return out;
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
