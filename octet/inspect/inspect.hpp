#pragma once

#include <string>

#include "octet/inspect/run.hpp"

namespace octet::inspect {

/// Description of `path`: a run's folder, a checkpoint, a dataset, a token shard, a Hugging Face folder or a safetensors
/// file. Throws ConfigError for anything else, and the errors of their readers.
Finding path_text(const std::string& path);

}  // namespace octet::inspect
