#pragma once

#include "octet/config/field_list.hpp"

namespace octet::config {

/// The continuation of "unknown key `optim.lr`": "; did you mean `optim.learning_rate`?", else the keys that its section has.
/// Looked for, in this order: a key of the same last name in another section, one of the same words or initials or of nearly the same
/// spelling in the same section, one of the same words or initials anywhere, one in the same section that `key` abbreviates (or the
/// reverse), and one of nearly the same spelling anywhere.
std::string suggestion(const Section& root, std::string_view key);

/// The key that an option of this name would set, such as "train.batch" for "batch-size"; of a section, its first key. "" if there is none.
std::string key_for_option(const Section& root, std::string_view option);

}  // namespace octet::config
