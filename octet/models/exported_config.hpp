#pragma once

#include "octet/json/value.hpp"
#include "octet/models/companions.hpp"
#include "octet/models/config.hpp"
#include "octet/models/weight_form.hpp"

namespace octet::models {

/// config.json of an export of `shape` with weights of that form; `ignored`: the modules whose weights are values beside codes. With a
/// config.json among the companions it is that file with another dtype and quantization_config: keys that Octet does not know stay as they
/// are. Otherwise it is made from the shape, and begin and end tokens follow from the tokenizer's files, where there are any. Throws
/// ConfigError when the companions' config.json describes another shape.
json::Value exported_config(const ModelShape& shape, const WeightForm&, const Companions&, const std::vector<std::string>& ignored = {});

}  // namespace octet::models
