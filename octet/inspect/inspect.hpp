#pragma once

#include <string>

#include "octet/inspect/run.hpp"

namespace octet::inspect {

/// What stands at `path`, which may be a run's folder, a checkpoint, a dataset, a token shard, a Hugging Face folder or a safetensors
/// file. Throws ConfigError when it is none of them, and as their readers do.
Finding path_text(const std::string& path);

}  // namespace octet::inspect
