#pragma once

#include <string_view>
#include <vector>

#include "octet/models/hugging_face_format.hpp"
#include "octet/models/model.hpp"

namespace octet {

/// A named size of a family.
struct ModelSize {
  std::string_view name;  // "qwen2.5-0.5b"
  ModelShape shape;
};

/// One family of models: all properties in which families differ.
struct ModelFamily {
  std::string_view name;
  std::vector<ModelSize> (*sizes)();
  std::unique_ptr<Model> (*make)(const ModelShape&, const ModelOptions&, Precision&);
  HuggingFaceFormat hugging_face;
};

const std::vector<ModelFamily>& model_families();
/// Throws ConfigError with the nearest name when there is none.
const ModelFamily& model_family(std::string_view name);
/// A named size of any family; throws ConfigError with the nearest name.
const ModelShape& model_size(std::string_view name);
/// Throws ConfigError when the shape is inconsistent (heads, widths, lengths) or options do not fit it.
std::unique_ptr<Model> make_model(const ModelShape&, const ModelOptions&, Precision&);

}  // namespace octet
