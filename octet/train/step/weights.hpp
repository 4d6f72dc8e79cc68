#pragma once

#include <string>

#include "octet/io/tensor_folder.hpp"
#include "octet/train/step/engine.hpp"

namespace octet::train {

/// Fills an engine's parameters, on any device, from a Hugging Face folder. Throws as load_hugging_face().
void load_weights(Engine&, const std::string& folder);
/// The same from a folder whose weights are open already.
void load_weights(Engine&, const io::TensorFolder&);
/// Writes them as one. Throws as save_hugging_face().
void save_weights(Engine&, const std::string& folder, DType dtype = DType::f32);

}  // namespace octet::train
