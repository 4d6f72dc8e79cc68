#pragma once

#include "octet/cli/command.hpp"
#include "octet/config/read.hpp"
#include "octet/train/run/config/run_config.hpp"

namespace octet::cli {

/// The options that train, compare and plan share: a configuration file, `--set key=value`, and flags for keys.
struct RunOptions {
  std::string file, fp8, level, init, data, output, name, max_time;
  std::vector<std::string> set;
  std::int64_t steps = 0, tokens = 0;
  bool fp8_given = false;
  config::Written written = config::Written::by_user;  // of the file

  void add_to(Command&);
  /// The resulting configuration: the file, then the flags, then --set. Warns of options without effect.
  train::RunConfig config() const;
  /// The same without the warnings. Keys that are not set have the values of `defaults`; `origins` gets the places of the others.
  train::RunConfig config(const train::RunConfig& defaults, config::Origins& origins) const;
  /// The keys that the user has set.
  std::vector<std::string> keys() const;
};

/// "90", "90s", "5m", "1h30m" in seconds; throws ConfigError naming `option` otherwise.
double seconds_of(const std::string& option, const std::string& text);

/// The recipe of `--fp8` without a value.
inline constexpr const char* default_fp8_recipe = "current";

}  // namespace octet::cli
