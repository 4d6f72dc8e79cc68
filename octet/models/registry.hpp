#pragma once

#include <string_view>
#include <vector>

#include "octet/models/hugging_face_format.hpp"
#include "octet/models/model.hpp"

namespace octet::models {

/// A named size of a family.
struct ModelSize {
  std::string_view name;  // "qwen2.5-0.5b"
  ModelShape shape;
};

/// The GGUF form of a family's models. Rows of tensors are those of its Hugging Face format.
struct GgufFormat {
  std::string_view architecture = {};  // llama.cpp's name; empty: there is none
  bool neighbours = false;             // pairs that rotate together are neighbouring rows of queries and keys, not half a head apart
};

/// One family of models: all properties in which families differ.
struct ModelFamily {
  std::string_view name;
  std::vector<ModelSize> (*sizes)();
  std::unique_ptr<Model> (*make)(const ModelShape&, const ModelOptions&, scaling::Precision&);
  HuggingFaceFormat hugging_face;
  bool rotary = true;               // positions are rotations: the shape's rope_* count
  bool parts = true;                // members of ModelOptions::sequences have parts of sequences
  bool divides = false;             // members of ModelOptions::partition have parts of the model
  bool gated = true;                // an MLP has three matrices, else two
  bool experts = false;             // layers have experts: the shape's experts count
  bool latent = false;              // attention has latents: the shape's latent counts
  bool ahead = false;               // layers behind the last block may predict further tokens: ModelShape::mtp_depth
  bool norms_of_all_heads = false;  // of queries and of keys: members of a partition exchange their sums
  GgufFormat gguf = {};
};

/// All families, in the order of the documentation, then registered ones.
const std::vector<ModelFamily>& model_families();
/// Adds a family of one's own, so that every ModelShape may name it, and every configuration one of its sizes. The targets of its views
/// must last as long as the program. `sizes` may be null. `hugging_face` may be left out: such models are kept in checkpoints alone, and
/// saving or loading them as a Hugging Face folder is a ConfigError. To be called from one thread before anything else of Octet: references
/// that model_families(), named_size() and model_size() returned are void. Throws ContractError when a name is empty or taken, or `make` is
/// null. examples/add_model.cpp shows it.
void register_model_family(ModelFamily);
/// Throws ConfigError with the nearest name when there is none.
const ModelFamily& model_family(std::string_view name);
/// A named size of any family; throws ConfigError with the nearest name.
const ModelSize& named_size(std::string_view name);
/// Its shape.
const ModelShape& model_size(std::string_view name);
/// Throws ConfigError when the shape is inconsistent (heads, widths, lengths) or options do not fit it.
std::unique_ptr<Model> make_model(const ModelShape&, const ModelOptions&, scaling::Precision&);

}  // namespace octet::models
