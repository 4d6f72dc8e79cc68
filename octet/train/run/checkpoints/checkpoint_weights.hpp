#pragma once

#include <string>

#include "octet/train/step/engine.hpp"

namespace octet::train {

/// Fills an engine's parameters and the biases of its routers, on any device, from a checkpoint's folder; nothing else of the state is
/// read. The checkpoint's bytes were verified before (CheckpointStore::verify). Throws DataError naming a tensor that is missing or of
/// another type or shape.
void load_checkpoint_weights(Engine&, const std::string& checkpoint);
/// The adapters in a checkpoint's folder, of a run that trained these over a model of this shape. Throws DataError as above.
models::TrainedAdapters checkpoint_adapters(const std::string& checkpoint, const models::ModelShape&, const models::AdapterConfig&);
/// The same of the state of quantizers: maxima and scales of the last step. The engine's precision is that of the checkpoint's run.
void load_checkpoint_scales(Engine&, const std::string& checkpoint);

}  // namespace octet::train
