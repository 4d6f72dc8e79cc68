#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "octet/models/config.hpp"

namespace octet::json {
class Fields;
class Value;
}  // namespace octet::json

namespace octet::models {

/// Where a tensor of a Hugging Face file belongs: rows [first, first + rows) of one of Octet's parameters. Reading and writing use a list
/// of these; slices of one parameter are in the order of their rows, without gaps. Rows behind the last slice are padding, which files do
/// not have.
struct WeightSlice {
  std::string name;       // "model.layers.0.self_attn.k_proj.weight"
  std::string parameter;  // "layers.0.attn.qkv.weight"
  std::int64_t first = 0, rows = 0;
  bool transposed = false;  // stored as [columns, rows]
  bool wide = false;        // F32 in every form of weights
  bool alias = false;       // a second name for the same rows; a file that has it must have the same values
  bool written = false;     // of an alias: exports have it
  std::int64_t stack = 1;   // of experts: the parameter's matrices, of equal numbers of rows, with a scale per tensor each
};

/// The Hugging Face format of a family's models. config.json's model_type is the family's name.
struct HuggingFaceFormat {
  std::string_view architecture;            // transformers' class: "LlamaForCausalLM"
  std::string_view prefix;                  // of most names; absent from files of a model without its head: "model."
  std::vector<std::string_view> constants;  // suffixes of tables in old files that are not read
  /// From config.json; DataError naming the key for anything that Octet's model does not compute.
  ModelShape (*read)(const json::Fields& config) = nullptr;
  /// Writes every key that follows from the shape.
  void (*write)(const ModelShape&, json::Value& config) = nullptr;
  std::vector<WeightSlice> (*weights)(const ModelShape&) = nullptr;
  /// Whether a tensor of that name is of ModelShape::kept_layers: not read, and handed on. Null: there are none.
  bool (*keeps)(const ModelShape&, std::string_view name) = nullptr;

  explicit operator bool() const { return read != nullptr && write != nullptr && weights != nullptr; }
};

/// Beyond these a config.json is refused: the products of any of them fit 64 bits.
struct HuggingFaceLimits {
  static constexpr std::int64_t width = 1 << 20, layers = 1 << 12, heads = 1 << 14, head_dim = 1 << 12, hidden = 1 << 22,
                                vocabulary = 1 << 24, positions = 1 << 28, experts = 1 << 12;
};

}  // namespace octet::models
