#include "octet/models/gguf/gguf.hpp"

#include <cmath>
#include <cstring>
#include <utility>

#include "octet/models/gguf/architecture.hpp"
#include "octet/models/gguf/tokenizer_keys.hpp"
#include "octet/models/registry.hpp"
#include "octet/models/rope_keys.hpp"
#include "octet/models/mapped_weight.hpp"
#include "octet/numerics/formats.hpp"
#include "octet/ops/rope/rope.hpp"

namespace octet::models {
namespace {

using io::GgufType;

constexpr std::pair<std::string_view, GgufType> forms[] = {{"gguf-f16", GgufType::f16}, {"gguf-q8_0", GgufType::q8_0}};
constexpr const char* rope_factors = "rope_freqs.weight";

const GgufFormat& format_of(const ModelShape& shape) {
  const GgufFormat& found = model_family(shape.family).gguf;
  if (found.architecture.empty())
    throw ConfigError(octet::format("models of family {} have no GGUF form; export with another --dtype", shape.family));
  if (shape.rope_scaling && ops::rope_amplitude(*shape.rope_scaling) != 1)
    throw ConfigError(octet::format(
        "model.rope_scaling: {} scales rotated queries and keys, which GGUF files of Octet do not say; export with another --dtype",
        rope_text(shape)));
  const GgufArchitecture& read = gguf_architecture(found.architecture);
  if (shape.rope_scaling && !read.stretches)
    throw ConfigError(octet::format("model.rope_scaling: {}: llama.cpp does not stretch rotations of {}; export with another --dtype",
                                    rope_text(shape), read.name));
  if (shape.biases != BiasShape{})
    throw ConfigError(octet::format("{} = true: Octet writes no such biases to GGUF; export with another --dtype",
                                    shape.biases.attention ? "attention_bias" : "mlp_bias"));
  if (const std::string why = read.differs(shape); !why.empty())
    throw ConfigError(octet::format("models of family {} have no GGUF form with {}; export with another --dtype", shape.family, why));
  return found;
}

/// "model.layers.3.self_attn.q_proj.weight" -> "blk.3.attn_q.weight".
std::string gguf_name(std::string name, const GgufArchitecture& read) {
  const std::pair<std::string_view, std::string_view> changes[] = {{"model.embed_tokens.", "token_embd."},
                                                                   {"model.norm.", "output_norm."},
                                                                   {"lm_head.", "output."},
                                                                   {"model.layers.", "blk."},
                                                                   {"post_attention_layernorm.", read.second_norm},
                                                                   {"pre_feedforward_layernorm.", "ffn_norm."},
                                                                   {"post_feedforward_layernorm.", "post_ffw_norm."},
                                                                   {"input_layernorm.", "attn_norm."},
                                                                   {"self_attn.q_proj.", "attn_q."},
                                                                   {"self_attn.k_proj.", "attn_k."},
                                                                   {"self_attn.v_proj.", "attn_v."},
                                                                   {"self_attn.o_proj.", "attn_output."},
                                                                   {"self_attn.qkv_proj.", "attn_qkv."},
                                                                   {"self_attn.q_norm.", "attn_q_norm."},
                                                                   {"self_attn.k_norm.", "attn_k_norm."},
                                                                   {"mlp.gate_proj.", "ffn_gate."},
                                                                   {"mlp.up_proj.", "ffn_up."},
                                                                   {"mlp.gate_up_proj.", "ffn_up."},
                                                                   {"mlp.down_proj.", "ffn_down."}};
  for (const auto& [from, to] : changes)
    if (const auto at = name.find(from); at != std::string::npos) name.replace(at, from.size(), to);
  return name;
}

GgufType type_of(const MappedWeight& p, GgufType wanted) {
  const std::vector<std::int64_t> shape = p.stored_shape();
  if (shape.size() == 1) return GgufType::f32;
  return wanted == GgufType::q8_0 && shape[1] % io::gguf_block != 0 ? GgufType::f16 : wanted;
}

/// Rows of pairs that rotate together are half a head apart here, and neighbours there.
bool moves_rows(const MappedWeight& p, const GgufFormat& f) {
  return f.neighbours && (p.name().find(".q_proj.weight") != std::string::npos || p.name().find(".k_proj.weight") != std::string::npos);
}

std::vector<float> with_neighbours(std::span<const float> heads, std::int64_t head_dim, std::int64_t columns) {
  std::vector<float> out(heads.size());
  const std::int64_t rows = std::int64_t(heads.size()) / columns, half = head_dim / 2;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t in_head = r % head_dim, to = r - in_head + in_head % half * 2 + in_head / half;
    std::memcpy(&out[std::size_t(to * columns)], &heads[std::size_t(r * columns)], std::size_t(columns) * sizeof(float));
  }
  return out;
}

template <class T>
void put(std::vector<std::byte>& out, T x) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&x);
  out.insert(out.end(), bytes, bytes + sizeof x);
}

// Source: ggml, quantize_row_q8_0_ref.
void put_block(std::vector<std::byte>& out, std::span<const float> x) {
  float amax = 0;
  for (const float v : x) amax = std::max(amax, std::fabs(v));
  const float d = amax / 127, inverse = d != 0 ? 1.0f / d : 0.0f;
  put(out, to_fp16(d).bits);
  for (const float v : x) out.push_back(std::byte(std::int8_t(std::round(v * inverse))));
}

/// Weights of norms, 1 added.
std::vector<float> from_one(std::span<const float> w) {
  std::vector<float> out(w.begin(), w.end());
  for (float& x : out) x += 1;
  return out;
}

std::vector<std::byte> encoded(std::span<const float> values, GgufType type, const std::string& name) {
  constexpr float most = 65504;
  std::vector<std::byte> out;
  for (const float x : values)
    if (!std::isfinite(x) || (type == GgufType::f16 && std::fabs(x) > most))
      throw DataError(
          octet::format("tensor \"{}\" has the value {}, which F16 does not hold; export another step, or with another --dtype", name, x));
  if (type == GgufType::q8_0)
    for (std::size_t i = 0; i < values.size(); i += std::size_t(io::gguf_block))
      put_block(out, values.subspan(i, std::size_t(io::gguf_block)));
  else if (type == GgufType::f16)
    for (const float x : values) put(out, to_fp16(x).bits);
  else
    for (const float x : values) put(out, x);
  return out;
}

/// Factors that divide the frequencies of rotations, where these are stretched.
std::vector<float> rope_divisors(const ModelShape& s) {
  std::vector<float> out;
  for (std::int64_t i = 0; s.rope_scaling && i < s.head_dim / 2; ++i)
    out.push_back(
        float(ops::rope_frequency(s.head_dim, i, s.rope_theta, {}) / ops::rope_frequency(s.head_dim, i, s.rope_theta, s.rope_scaling)));
  return out;
}

io::GgufKeys keys_of(const ModelShape& s, GgufType type, const Companions& companions) {
  constexpr std::uint32_t mostly_f16 = 1, mostly_q8_0 = 7;
  io::GgufKeys out;
  const std::string name(format_of(s).architecture), own = name + ".";
  const auto count = [&](const char* key, std::int64_t n) { out.add(own + key, std::uint32_t(n)); };
  out.add("general.architecture", name), out.add("general.type", "model"), out.add("general.name", s.family);
  out.add("general.file_type", type == GgufType::f16 ? mostly_f16 : mostly_q8_0), out.add("general.quantization_version", std::uint32_t(2));
  count("block_count", s.layers), count("context_length", s.max_sequence), count("embedding_length", s.width);
  count("feed_forward_length", s.hidden), count("vocab_size", s.vocabulary);
  count("attention.head_count", s.heads), count("attention.head_count_kv", s.kv_heads);
  count("attention.key_length", s.head_dim), count("attention.value_length", s.head_dim), count("rope.dimension_count", s.head_dim);
  out.add(own + "attention.layer_norm_rms_epsilon", float(s.norm_eps)), out.add(own + "rope.freq_base", float(s.rope_theta));
  gguf_architecture(name).add_keys(s, out);
  add_tokenizer_keys(companions, s.vocabulary, out);
  return out;
}

}  // namespace

std::vector<std::string> gguf_names() {
  std::vector<std::string> out;
  for (const auto& form : forms) out.emplace_back(form.first);
  return out;
}

io::GgufType gguf_type(std::string_view name) {
  for (const auto& [form, type] : forms)
    if (form == name) return type;
  throw ContractError(octet::format("no GGUF form is called {}", name));
}

void require_gguf(const ModelShape& shape, const Companions& companions) { keys_of(shape, GgufType::f16, companions); }

void save_gguf(const std::string& path, const ModelShape& shape, const std::vector<Parameter*>& parameters, io::GgufType type,
               const Companions& companions) {
  const GgufFormat& format = format_of(shape);
  const GgufArchitecture& read = gguf_architecture(format.architecture);
  const io::GgufKeys keys = keys_of(shape, type, companions);
  auto places = mapped_weights(model_family(shape.family).hugging_face.weights(shape), parameters);
  std::erase_if(places, [](const MappedWeight& p) { return p.alias(); });
  std::vector<io::GgufTensor> tensors;
  for (const MappedWeight& p : places) tensors.push_back({gguf_name(p.name(), read), type_of(p, type), p.stored_shape()});
  const std::vector<float> divisors = rope_divisors(shape);
  if (!divisors.empty()) tensors.push_back({rope_factors, GgufType::f32, {std::int64_t(divisors.size())}});
  io::GgufWriter writer(path, keys, tensors);
  for (const MappedWeight& p : places) {
    const bool moves = moves_rows(p, format), shifts = read.norms_from_one && p.name().ends_with("norm.weight");
    const std::int64_t columns = p.stored_shape().back();
    p.visit_rows(moves ? shape.head_dim : 1, [&](std::span<const float> values) {
      const GgufType stored = type_of(p, type);
      const std::string name = gguf_name(p.name(), read);
      writer.append(name, moves    ? encoded(with_neighbours(values, shape.head_dim, columns), stored, name)
                          : shifts ? encoded(from_one(values), stored, name)
                                   : encoded(values, stored, name));
    });
  }
  if (!divisors.empty()) writer.append(rope_factors, std::as_bytes(std::span(divisors)));
  writer.commit();
}

}  // namespace octet::models
