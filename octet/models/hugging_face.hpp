#pragma once

#include <string>

#include "octet/io/tensor_folder.hpp"
#include "octet/models/companions.hpp"
#include "octet/models/config.hpp"
#include "octet/models/weight_form.hpp"
#include "octet/nn/parameters.hpp"

namespace octet::models {

/// Throws the errors of save_hugging_face() that do not depend on the folder, so that a run is refused before it trains: ConfigError when
/// the shape's family was registered without a Hugging Face format, DataError when a tokenizer's file that is read is damaged.
void require_exportable(const ModelShape&, const Companions& = {});

/// Writes the model as a Hugging Face folder: config.json and model.safetensors (shards of 5 GB and their index where there is more), with
/// the tensor names of transformers' LlamaForCausalLM, Qwen2ForCausalLM or GPT2LMHeadModel. Rows of padding are left out. config.json is
/// that of exported_config(); the companions' files go beside it. The folder is created. An existing folder with only such an export is
/// replaced atomically. Parameters must be in the CPU's memory. Throws IoError; ConfigError when the folder holds other files, which are
/// never removed.
void save_hugging_face(const std::string& folder, const ModelShape&, const std::vector<Parameter*>&, const WeightForm& = DType::f32,
                       const Companions& = {});
inline void save_hugging_face(const std::string& folder, const ModelShape& shape, const nn::Parameters& parameters,
                              const WeightForm& form = DType::f32, const Companions& companions = {}) {
  save_hugging_face(folder, shape, parameters.list(), form, companions);
}

/// Throws ConfigError when the shape's family stores matrices as [in, out], since no form with codes has them so.
void require_form(const ModelShape&, const WeightForm&);
/// The tensors of such an export whose codes are not those of training, since blocks of the parameter have rows of several tensors.
std::vector<std::string> tensors_with_other_blocks(const ModelShape&, const std::vector<Parameter*>&, const WeightForm&);

/// A model that is in the folder of an export already.
enum class Existing : std::uint8_t { refuse, replace };
/// Throws ConfigError, before anything is computed, where a user's export must not go: a symbolic link, a folder with links or with other
/// files, and, with Existing::refuse, a folder that is not empty.
void require_export_folder(const std::string& folder, Existing);

/// Throws ConfigError that says how to fetch a model where there is no such folder, such as for the name of one on a hub.
void require_folder(const std::string& folder);
/// The shape that a folder's config.json describes. Throws DataError naming file and key for anything that Octet cannot run, and the
/// supported families for a model of another family; IoError when there is no such file.
ModelShape read_hugging_face_shape(const std::string& folder);

/// Throws the DataError of load_hugging_face() unless the folder has every tensor of the model, of its type and shape, and no other. Reads
/// no values; the parameters may be those of the null device.
void require_weights(const io::TensorFolder&, const ModelShape&, const std::vector<Parameter*>&);

/// The stored scales of a parameter with codes, multiplied after decoding.
struct LayerScales {
  std::string parameter;  // "layers.0.mlp.down.weight"
  float input = 1;
  std::vector<float> weights;  // one per matrix of a stack
  bool operator==(const LayerScales&) const = default;
};
/// Those of all matrices with codes. Throws ConfigError naming a tensor of which there is none, or whose scale is not one per tensor, and
/// DataError for one that is not positive and finite.
std::vector<LayerScales> layer_scales(const io::TensorFolder&, const ModelShape&, const std::vector<Parameter*>&);

/// Fills every parameter from the folder's tensors (F32, BF16, F16, or F8_E4M3 with scales as quantization_config says; one file or sharded
/// with an index), rows of padding with zeros.
/// Parameters change only after names, types and shapes of all tensors were checked. Throws DataError naming a tensor that is missing,
/// unexpected or of another shape, and the expected one, or one with a code or scale that is no number; ConfigError when the folder has
/// another shape.
void load_hugging_face(const std::string& folder, const ModelShape&, const std::vector<Parameter*>&);
inline void load_hugging_face(const std::string& folder, const ModelShape& shape, nn::Parameters& parameters) {
  load_hugging_face(folder, shape, parameters.list());
}
/// The same from a folder whose weights are already open. Parameters without memory are those of other ranks, and are not filled.
void load_hugging_face(const io::TensorFolder&, const ModelShape&, const std::vector<Parameter*>&);

}  // namespace octet::models
