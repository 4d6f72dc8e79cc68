#include "octet/models/gguf/architecture.hpp"

#include <algorithm>
#include <cmath>

#include "octet/base/check.hpp"
#include "octet/base/text.hpp"

namespace octet::models {
namespace {

// Of a text that is longer than a window.
std::string without_window(const ModelShape& s) {
  if (!s.window || s.window.tokens >= s.max_sequence) return "";
  return octet::format("sliding_window = {}, beyond which llama.cpp reads, too, unless max_position_embeddings = {} is at most as large",
                       s.window.tokens, s.max_sequence);
}

std::string unlike_smollm3(const ModelShape& s) {
  constexpr std::int64_t step = 4;
  if (s.unturned_step == step) return without_window(s);
  return octet::format("layers without rotations: llama.cpp has none in each layer {}", step);
}

// Its attention has as many columns as the model, and its head is a matrix of its own.
std::string unlike_olmo2(const ModelShape& s) {
  if (s.heads * s.head_dim != s.width) return octet::format("head_dim = {}: llama.cpp wants {}", s.head_dim, s.width / s.heads);
  return s.tied ? "tie_word_embeddings = true: llama.cpp wants a matrix of the head" : without_window(s);
}

std::string unlike_phi3(const ModelShape& s) {
  if (s.heads * s.head_dim != s.width) return octet::format("head_dim = {}: llama.cpp wants {}", s.head_dim, s.width / s.heads);
  return without_window(s);
}

std::string unlike_gemma3(const ModelShape& s) {
  constexpr std::int64_t step = 6, layers_of_27b = 62;  // llama.cpp knows the scores of this size by its layers
  if (!s.window || s.window.global_step != step) return octet::format("layers without a window: llama.cpp has none in each layer {}", step);
  const double scores = 1 / std::sqrt(double(s.head_dim));
  if (s.layers == layers_of_27b || (s.multipliers.scores != 0 && std::fabs(s.multipliers.scores - scores) > 1e-6 * scores))
    return octet::format("query_pre_attn_scalar: llama.cpp wants head_dim = {}", s.head_dim);
  return "";
}

void add_granite_keys(const ModelShape& s, io::GgufKeys& out) {
  const Multipliers& m = s.multipliers;
  out.add("granite.attention.scale", float(m.scores != 0 ? m.scores : 1 / std::sqrt(double(s.head_dim))));
  out.add("granite.embedding_scale", float(m.embedding)), out.add("granite.residual_scale", float(m.branch));
  out.add("granite.logit_scale", float(m.logits_divisor));
}

void add_gemma3_keys(const ModelShape& s, io::GgufKeys& out) {
  out.add("gemma3.attention.sliding_window", std::uint32_t(s.window.tokens));
  out.add("gemma3.rope.freq_base_swa", float(s.window.rope_theta > 0 ? s.window.rope_theta : s.rope_theta));
}

// Source: llama.cpp's readers of these architectures and the names of PyPI `gguf`.
const GgufArchitecture architectures[] = {
    {.name = "llama", .stretches = true, .differs = without_window},
    {.name = "qwen2", .stretches = true},
    {.name = "qwen3", .stretches = true},
    {.name = "smollm3", .differs = unlike_smollm3},
    {.name = "granite", .stretches = true, .differs = without_window, .add_keys = add_granite_keys},
    {.name = "olmo2", .second_norm = "post_attention_norm.", .differs = unlike_olmo2},
    {.name = "phi3", .differs = unlike_phi3},
    {.name = "gemma3",
     .second_norm = "post_attention_norm.",
     .norms_from_one = true,
     .differs = unlike_gemma3,
     .add_keys = add_gemma3_keys},
};

}  // namespace

const GgufArchitecture& gguf_architecture(std::string_view name) {
  const auto* const found = std::ranges::find(architectures, name, &GgufArchitecture::name);
  check(found != std::end(architectures), "gguf: there is no architecture {}", name);
  return *found;
}

}  // namespace octet::models
