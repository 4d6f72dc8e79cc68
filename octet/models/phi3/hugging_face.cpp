#include "octet/models/phi3/hugging_face.hpp"

#include <algorithm>

#include "octet/json/fields.hpp"
#include "octet/models/llama/hugging_face.hpp"
#include "octet/models/window_keys.hpp"

namespace octet::models {
namespace {

ModelShape read_phi3(const json::Fields& config) {
  if (config.number_or("partial_rotary_factor", 1, 0, 1) != 1) config.refuse("partial_rotary_factor", "1");
  ModelShape shape = read_llama_like("phi3", config, {.norm_eps = 1e-5});
  read_biases(config, BiasKeys::none, shape);
  read_window(config, 0, shape);
  return shape;
}

void write_phi3(const ModelShape& shape, json::Value& config) {
  write_llama_like(shape, config);
  config.set("original_max_position_embeddings", shape.max_sequence).set("embd_pdrop", 0.0).set("resid_pdrop", 0.0);
  config.set("pad_token_id", {});  // transformers' default may be outside the vocabulary
  write_window(shape, config);
}

// The matrices of Llama's files that are one tensor: the first one's name becomes that of all, and the others are its rows.
struct Joined {
  std::string_view first, name;
  std::vector<std::string_view> others;
};

std::vector<WeightSlice> phi3_weights(const ModelShape& shape) {
  const Joined joined[] = {{"q_proj.", "qkv_proj.", {"k_proj.", "v_proj."}}, {"gate_proj.", "gate_up_proj.", {"up_proj."}}};
  std::vector<WeightSlice> out;
  for (WeightSlice& slice : llama_like_weights(shape, {})) {
    const auto has = [&](std::string_view part) { return slice.name.find(format(".{}", part)) != std::string::npos; };
    bool added = false;
    for (const Joined& j : joined) {
      if (has(j.first)) slice.name.replace(slice.name.find(j.first), j.first.size(), j.name);
      else if (std::ranges::any_of(j.others, has)) out.back().rows += slice.rows, added = true;
    }
    if (!added) out.push_back(std::move(slice));
  }
  return out;
}

}  // namespace

HuggingFaceFormat phi3_hugging_face() {
  return {.architecture = "Phi3ForCausalLM",
          .prefix = "model.",
          .constants = {".rotary_emb.inv_freq"},
          .read = read_phi3,
          .write = write_phi3,
          .weights = phi3_weights};
}

}  // namespace octet::models
