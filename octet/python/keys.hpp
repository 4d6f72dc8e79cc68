#pragma once

#include <string>
#include <utility>
#include <vector>

#include "octet/train/study/study.hpp"

namespace octet::python {

/// A configuration as Python gives it: a TOML file or none, and keys with the TOML text of their values.
struct Keys {
  std::string file;
  std::vector<std::pair<std::string, std::string>> values;
};

/// The configuration of these, on top of `defaults`; warns of keys without effect. Throws ConfigError.
train::RunConfig run_config(const Keys&, const train::RunConfig& defaults = {});
/// That of a run to resume: the stored one, changed by `keys`. Throws ConfigError.
train::RunConfig resumed_config(const Keys&, const std::string& folder);

}  // namespace octet::python
