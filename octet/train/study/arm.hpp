#pragma once

#include <string>
#include <vector>

#include "octet/train/run/config/run_config.hpp"

namespace octet::train {

/// One arm of a comparison: a name, and the keys in which it differs from the common configuration.
struct Arm {
  std::string name;               // of its folder, tables and charts
  std::vector<std::string> keys;  // "section.key=value", as for --set
};

/// The arm that `text` names: "o3: recipe.name=current, optim.learning_rate=1e-3", or a recipe, "current", which is short for
/// "current: recipe.name=current". Commas within brackets or quotes part no keys. Throws ConfigError when the name cannot be a folder's
/// (letters, digits, ".", "_", "-", no dot first, at most 64), when no key follows a colon, and for a recipe that does not exist.
Arm parse_arm(const std::string& text);

/// `common` with the arm's keys. A recipe.format that the arm's recipe lacks becomes the recipe's own, unless the arm sets it. Throws
/// ConfigError (naming the arm) for unknown keys and bad values, and for keys that all runs of a comparison share: name, output, seed,
/// data.*, train.max_seconds, train.eval_tokens, checkpoint.*.
RunConfig with_arm(const RunConfig& common, const Arm&);

}  // namespace octet::train
