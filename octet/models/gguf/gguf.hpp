#pragma once

#include <string>
#include <vector>

#include "octet/io/gguf_writer.hpp"
#include "octet/models/companions.hpp"
#include "octet/models/config.hpp"
#include "octet/tensor/parameter.hpp"

namespace octet::models {

/// The GGUF forms by their names: "gguf-f16" and "gguf-q8_0".
std::vector<std::string> gguf_names();
io::GgufType gguf_type(std::string_view name);

/// Throws ConfigError for a family that has no GGUF form, and as add_tokenizer_keys().
void require_gguf(const ModelShape&, const Companions&);

/// Writes a model as one GGUF file for llama.cpp: matrices as `type` (F16 where a row has no whole blocks), norms and biases as F32, the
/// tokenizer of the companions. Values are written in portions, so that no second copy of a tensor is in memory. Parameters must be in the
/// CPU's memory. Throws as require_gguf(), and DataError naming a tensor with a value that the form does not hold; IoError.
/// Source: llama.cpp, convert_hf_to_gguf.py, of which these are names, keys, and the order of rows.
void save_gguf(const std::string& path, const ModelShape&, const std::vector<Parameter*>&, io::GgufType type, const Companions&);

}  // namespace octet::models
