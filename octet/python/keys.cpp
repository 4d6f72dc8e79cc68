#include "octet/python/keys.hpp"

#include <algorithm>

#include "octet/base/log.hpp"
#include "octet/base/path.hpp"
#include "octet/config/attributes.hpp"
#include "octet/config/read.hpp"
#include "octet/train/run/checkpoints/resume.hpp"
#include "octet/train/run/config/token_folders.hpp"
#include "octet/train/run/folder/foreign_folder.hpp"

namespace octet::python {
namespace {

train::RunConfig read(const Keys& keys, const train::RunConfig& defaults, config::Written written, config::Origins& origins) {
  train::RunConfig c = defaults;
  if (!keys.file.empty() && !exists(keys.file))
    throw ConfigError(format("there is no configuration file {}; check the path, or pass the keys as a dict", printable(keys.file)));
  if (!keys.file.empty()) origins = config::read_toml_file(keys.file, c, written);
  for (const auto& [key, text] : keys.values) config::set_key_text(c, key, text, "config", origins);
  return c;
}

}  // namespace

train::RunConfig run_config(const Keys& keys, const train::RunConfig& defaults) {
  config::Origins origins;
  train::RunConfig c = read(keys, defaults, config::Written::by_user, origins);
  train::keep_conversations_apart(c, origins);
  for (const auto& sentence : config::idle_options(c, defaults, origins)) log::warn("{}", sentence);
  return c;
}

train::RunConfig resumed_config(const Keys& keys, const std::string& folder) {
  if (!is_folder(folder)) throw ConfigError(format("resume: there is no run folder {}; check the path", printable(folder)));
  if (exists(folder + "/" + train::Study::file_name))
    throw ConfigError(format("resume: {} is a comparison; resume it with octet.compare(resume=...)", printable(folder)));
  train::require_no_links(folder);
  Keys stored = keys;
  const bool own = stored.file.empty();
  if (own) stored.file = folder + "/config.toml";
  if (!exists(stored.file))
    throw ConfigError(
        format("resume: there is no {}, so {} is no run's folder; name that of a run", printable(stored.file), printable(folder)));
  config::Origins origins;
  const train::RunConfig c =
      train::stored_model(read(stored, {}, own ? config::Written::by_program : config::Written::by_user, origins), folder);
  const bool named = std::ranges::any_of(keys.values, [](const auto& v) { return v.first == "alerts.command"; });
  if (own && !named && c.alerts.enabled && !c.alerts.command.empty()) train::require_own_command(folder, stored.file, c.alerts.command);
  return c;
}

}  // namespace octet::python
