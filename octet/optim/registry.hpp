#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "octet/optim/optimizer_config.hpp"
#include "octet/optim/update.hpp"

namespace octet::optim {

/// One optimizer: its name, which parameters it updates, and how.
struct OptimizerEntry {
  std::string_view name, summary;
  bool whole_matrices;              // reads all values of a matrix at once, so ranks cannot divide one
  bool second_moments;              // of the parameters that it takes
  bool (*takes)(const Parameter&);  // AdamW updates all others
  std::unique_ptr<Update> (*make)(Stream&, const OptimizerConfig&, std::vector<UpdatedSlice>);
};
const std::vector<OptimizerEntry>& optimizers();
std::vector<std::string> optimizer_names();
/// Throws ConfigError for a name that does not exist.
const OptimizerEntry& optimizer_named(std::string_view name);

}  // namespace octet::optim
