#pragma once

#include <string>
#include <string_view>

#include "octet/io/gguf_writer.hpp"
#include "octet/models/config.hpp"

namespace octet::models {

/// How llama.cpp reads models of one of its architectures, where that is more than GgufFormat says.
struct GgufArchitecture {
  std::string_view name;                       // "gemma3"
  std::string_view second_norm = "ffn_norm.";  // its name for post_attention_layernorm
  bool norms_from_one = false;                 // weights of norms are stored as 1 + w
  bool stretches = false;                      // it reads factors of stretched rotations
  /// The property in which llama.cpp would compute another model: "model.window = 20: it reads all tokens"; "" for none.
  std::string (*differs)(const ModelShape&) = [](const ModelShape&) { return std::string(); };
  /// Adds keys that start with the architecture's name.
  void (*add_keys)(const ModelShape&, io::GgufKeys&) = [](const ModelShape&, io::GgufKeys&) {};
};

/// Throws ContractError for an architecture that has no entry.
const GgufArchitecture& gguf_architecture(std::string_view name);

}  // namespace octet::models
