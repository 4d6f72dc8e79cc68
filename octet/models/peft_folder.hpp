#pragma once

#include <string>

#include "octet/models/adapters.hpp"

namespace octet::models {

// Adapters as PEFT reads and writes them: adapter_config.json and adapter_model.safetensors, whose tensors are
// "base_model.model.<module>.lora_A.weight" [rank, in] and "...lora_B.weight" [rows, rank].

/// Whether a folder has adapters of this kind.
bool is_peft_folder(const std::string& folder);

/// Writes a folder of F32 tensors. `base`: the folder of the model's own weights, for base_model_name_or_path. The folder is created, and
/// an existing one with only such files is replaced. Throws IoError; ConfigError when it holds other files.
void save_peft_folder(const std::string& folder, const TrainedAdapters&, const ModelShape&, const std::string& base);

/// base_model_name_or_path. Throws DataError.
std::string base_of_peft_folder(const std::string& folder);
/// Its adapters, for a model of this shape. use_rslora becomes the equal alpha. Throws DataError or ConfigError naming file and key for
/// another kind of adapters (DoRA, patterns of ranks, modules that are saved whole, biases), and tensors that are missing, unexpected or
/// of another shape.
TrainedAdapters read_peft_folder(const std::string& folder, const ModelShape&);

/// AdapterConfig::init's rank, alpha and targets, where it has such a folder and no rank of its own; otherwise `config`.
AdapterConfig completed(const AdapterConfig& config, const ModelShape&);

}  // namespace octet::models
