#pragma once

#include <string>
#include <vector>

#include "octet/config/fields.hpp"
#include "octet/config/read.hpp"

// Attributes that a configuration's list of fields declares for its keys.

namespace octet::config {

/// The keys that a resumed run may give another value (OnResume::may_change).
std::vector<std::string> keys_that_may_change(ConstRef config);

/// A key that nothing reads under the other values of its configuration, and why.
struct IdleKey {
  std::string key, why;
};
/// All of them, including those with default values.
std::vector<IdleKey> idle_keys(ConstRef config);

/// "run.toml:4:1: `recipe.history` has no effect: no history is kept under bf16".
std::string idle_text(const IdleKey&, const Origins&);

/// Those of idle_keys() whose value is another than in `defaults`, a configuration of the same kind, as sentences.
std::vector<std::string> idle_options(ConstRef config, ConstRef defaults, const Origins&);

}  // namespace octet::config
