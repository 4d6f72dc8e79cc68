#include "octet/optim/registry.hpp"

#include <algorithm>

#include "octet/base/text.hpp"
#include "octet/optim/adamw/adamw.hpp"
#include "octet/optim/muon/muon.hpp"

namespace octet::optim {

const std::vector<OptimizerEntry>& optimizers() {
  static const std::vector<OptimizerEntry> all = {
      {"adamw", "AdamW for all parameters", false, true, [](const Parameter&) { return true; }, make_adamw},
      {"muon", "Muon for matrices of blocks, AdamW for embedding, head, norms and biases", true, false, takes_muon, make_muon},
  };
  return all;
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const OptimizerEntry& e : optimizers()) names.emplace_back(e.name);
  return names;
}

const OptimizerEntry& optimizer_named(std::string_view name) {
  const auto found = std::ranges::find(optimizers(), name, &OptimizerEntry::name);
  if (found == optimizers().end())
    throw ConfigError(format("optim.name = \"{}\" does not exist; optimizers are {}", printable(name), joined(optimizer_names())));
  return *found;
}

}  // namespace octet::optim
