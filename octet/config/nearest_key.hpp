#pragma once

#include "octet/config/field_list.hpp"

namespace octet::config {

/// The continuation of "unknown key `optim.lr`": "; did you mean `optim.learning_rate`?", else the keys that its section has.
/// Looked for, in this order: a key of nearly the same spelling in the same section, one that `key` abbreviates (or the reverse), a key
/// of nearly the same spelling anywhere, one of the same last name in another section.
std::string suggestion(const Section& root, std::string_view key);

}  // namespace octet::config
