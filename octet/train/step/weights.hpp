#pragma once

#include <string>

#include "octet/base/checksum.hpp"
#include "octet/io/tensor_folder.hpp"
#include "octet/io/gguf_writer.hpp"
#include "octet/models/companions.hpp"
#include "octet/models/weight_form.hpp"
#include "octet/nn/router_biases.hpp"
#include "octet/train/step/engine.hpp"

namespace octet::train {

/// Those of the engine's routers, as files have them.
nn::RouterBiases biases_of(Engine&);
/// Fills an engine's parameters and the biases of its routers, on any device, from a Hugging Face folder. Throws as load_hugging_face().
void load_weights(Engine&, const std::string& folder);
/// The same from a folder whose weights are open already. The products of `merged` are added to them, of an engine whose weights are
/// not frozen.
void load_weights(Engine&, const io::TensorFolder&, const models::TrainedAdapters& merged = {});
/// Gives quantizers with known scales per tensor those that the folder stores for its codes and their activations. The weights are those
/// of the folder, too. Throws as models::layer_scales().
void load_scales(Engine&, const io::TensorFolder&);
/// Throws the errors of load_weights() that need no memory: a tensor that is missing, unexpected or of another type or shape.
void require_weights(const io::TensorFolder&, const EngineConfig&);
/// Of all parameters' values as this rank holds them, with their names.
data::Checksum checksum_of_weights(Engine&);
/// Writes them as one, on the first rank; all ranks call it. Throws as save_hugging_face().
void save_weights(Engine&, const std::string& folder, const models::WeightForm& = DType::f32, const models::Companions& = {});
/// Fills the adapters of an engine from a PEFT folder. Throws as models::read_peft_folder(), and ConfigError where the engine has other
/// ones.
void load_adapters(Engine&, const models::AdapterConfig&, const std::string& folder);
/// Writes the adapters as a PEFT folder, on the first rank; all ranks call it. `base`: the folder of the frozen weights.
void save_adapters(Engine&, const models::AdapterConfig&, const std::string& folder, const std::string& base);
/// Writes them as a GGUF file. Throws as models::save_gguf().
void save_gguf(Engine&, const std::string& path, io::GgufType, const models::Companions&);

}  // namespace octet::train
