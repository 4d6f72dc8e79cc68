#pragma once

#include "octet/config/field_list.hpp"
#include "octet/config/toml_guard.hpp"

namespace octet::config {

/// One key of a TOML text. Tables are entries too ("a section"), each before its own entries.
struct Entry {
  std::vector<std::string> path;
  Position key_at, value_at;
  Value value;
};

/// All entries in the order of the text, the text guarded first. Throws ConfigError, with `name` and the place, when it is not TOML.
std::vector<Entry> parse_toml(std::string_view text, const std::string& name);

}  // namespace octet::config
