#include "octet/models/gguf/gguf.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "octet/base/error.hpp"
#include "octet/base/file.hpp"
#include "octet/models/registry.hpp"
#include "octet/nn/parameters.hpp"
#include "octet/numerics/formats.hpp"
#include "octet/tokenizer/bpe_training.hpp"
#include "octet/tokenizer/pre_tokenizer.hpp"
#include "tests/testing/scratch.hpp"

// A reader of its own, by ggml's specification of GGUF 3, and files of models whose values are known. tests/peers/check_gguf.py holds such
// files against PyPI `gguf` and llama.cpp.

namespace octet::models {
namespace {

using testing::error_of, testing::has, testing::Scratch;

struct Read {
  std::string kind;                // of a key
  std::string text;                // of a key with one value
  std::vector<std::string> texts;  // of a list
};
struct Place {
  std::vector<std::uint64_t> dims;  // innermost first
  std::uint32_t type = 0;
  std::uint64_t offset = 0;
};

struct Gguf {
  explicit Gguf(const std::string& path) : bytes(read_file(path, std::size_t(1) << 24)) {
    EXPECT_EQ(bytes.substr(0, 4), "GGUF");
    at = 4;
    EXPECT_EQ(next<std::uint32_t>(), 3u);
    const auto tensors_count = next<std::uint64_t>(), keys_count = next<std::uint64_t>();
    for (std::uint64_t i = 0; i < keys_count; ++i) {
      const std::string name = string();
      const auto kind = next<std::uint32_t>();
      if (kind != 9) {
        keys[name] = {std::to_string(kind), value(kind), {}};
        continue;
      }
      const auto of = next<std::uint32_t>();
      Read list{"list of " + std::to_string(of), "", {}};
      for (auto n = next<std::uint64_t>(); n > 0; --n) list.texts.push_back(value(of));
      keys[name] = list;
    }
    for (std::uint64_t i = 0; i < tensors_count; ++i) {
      const std::string name = string();
      Place p;
      for (auto n = next<std::uint32_t>(); n > 0; --n) p.dims.push_back(next<std::uint64_t>());
      p.type = next<std::uint32_t>(), p.offset = next<std::uint64_t>();
      EXPECT_EQ(p.offset % 32, 0u);
      tensors[name] = p;
    }
    data = (at + 31) / 32 * 32;
  }
  template <class T>
  T next() {
    T x;
    std::memcpy(&x, bytes.data() + at, sizeof x);
    at += sizeof x;
    return x;
  }
  std::string string() {
    const auto n = next<std::uint64_t>();
    at += n;
    return bytes.substr(at - n, n);
  }
  std::string value(std::uint32_t kind) {
    switch (kind) {
      case 4: return std::to_string(next<std::uint32_t>());
      case 5: return std::to_string(next<std::int32_t>());
      case 6: return octet::format("{}", next<float>());
      case 7: return next<char>() != 0 ? "true" : "false";
      case 8: return string();
      default: ADD_FAILURE() << "kind " << kind; return "";
    }
  }
  float value_at(const std::string& name, std::uint64_t i) const {
    const Place& p = tensors.at(name);
    const char* const from = bytes.data() + data + p.offset;
    if (p.type == 0) {
      float x;
      std::memcpy(&x, from + i * 4, 4);
      return x;
    }
    std::uint16_t half;
    std::memcpy(&half, from + (p.type == 1 ? i * 2 : i / 32 * 34), 2);
    if (p.type == 1) return to_float(Fp16{half});
    return to_float(Fp16{half}) * float(static_cast<signed char>(from[i / 32 * 34 + 2 + i % 32]));
  }
  std::string bytes;
  std::uint64_t at = 0, data = 0;
  std::map<std::string, Read> keys;
  std::map<std::string, Place> tensors;
};

ModelShape shape_of(const char* family) {
  return {.family = family,
          .width = 64,
          .layers = 2,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 16,
          .hidden = 80,
          .vocabulary = 257,
          .max_sequence = 32,
          .norm_eps = 1e-5,
          .rope_theta = 5000,
          .tied = std::string_view(family) != "llama"};
}

struct Weights {
  explicit Weights(const ModelShape& shape)
      : stream(Device::cpu),
        precision(scaling::PrecisionConfig{.recipe = "fp32"}),
        model(make_model(shape, {}, precision)),
        parameters(stream, *model, false) {
    for (Parameter* p : parameters.list())
      for (std::int64_t i = 0; i < p->shape.count(); ++i) p->value.values().f32()[i] = value(*p, i);
  }
  /// Of F16 and F32 alike: row and column modulo small numbers.
  static float value(const Parameter& p, std::int64_t i) {
    const std::int64_t columns = p.shape.rank == 2 ? p.shape[1] : 1;
    return float(i / columns % 97) * 0.25f + float(i % columns % 13) * 0.015625f - 8.0f;
  }
  Stream stream;
  scaling::Precision precision;
  std::unique_ptr<Model> model;
  nn::Parameters parameters;
};

Gguf exported(const Scratch& scratch, const ModelShape& shape, const char* form, const Companions& companions = {}) {
  Weights from(shape);
  save_gguf(scratch.at("m.gguf"), shape, from.parameters.list(), gguf_type(form), companions);
  return Gguf(scratch.at("m.gguf"));
}

/// Row r, column c of a matrix with these values.
float wanted(std::int64_t r, std::int64_t c) { return float(r % 97) * 0.25f + float(c % 13) * 0.015625f - 8.0f; }

TEST(Gguf, KeysAndTensorsHaveTheNamesOfLlamaCpp) {
  const Scratch scratch;
  const Gguf g = exported(scratch, shape_of("llama"), "gguf-f16");
  for (const auto& [key, value] : {std::pair("general.architecture", "llama"),
                                   {"general.file_type", "1"},
                                   {"llama.block_count", "2"},
                                   {"llama.context_length", "32"},
                                   {"llama.embedding_length", "64"},
                                   {"llama.feed_forward_length", "80"},
                                   {"llama.attention.head_count", "4"},
                                   {"llama.attention.head_count_kv", "2"},
                                   {"llama.attention.layer_norm_rms_epsilon", "1e-05"},
                                   {"llama.rope.freq_base", "5000"},
                                   {"llama.rope.dimension_count", "16"},
                                   {"tokenizer.ggml.model", "gpt2"},
                                   {"tokenizer.ggml.pre", "gpt-2"},
                                   {"tokenizer.ggml.eos_token_id", "256"},
                                   {"tokenizer.ggml.add_bos_token", "false"}})
    EXPECT_EQ(g.keys.at(key).text, value) << key;
  EXPECT_EQ(g.keys.at("tokenizer.ggml.tokens").texts.size(), 257u);
  EXPECT_EQ(g.keys.at("tokenizer.ggml.tokens").texts[' '], "\u0120");
  EXPECT_EQ(g.keys.at("tokenizer.ggml.token_type").texts[256], "3");
  EXPECT_EQ(g.tensors.size(), 3u + 2 * 9);
  for (const char* name : {"token_embd.weight", "output_norm.weight", "output.weight", "blk.1.attn_norm.weight", "blk.1.attn_q.weight",
                           "blk.1.attn_k.weight", "blk.1.attn_v.weight", "blk.1.attn_output.weight", "blk.1.ffn_norm.weight",
                           "blk.1.ffn_gate.weight", "blk.1.ffn_up.weight", "blk.1.ffn_down.weight"})
    EXPECT_TRUE(g.tensors.contains(name)) << name;
  EXPECT_EQ(g.tensors.at("blk.0.attn_k.weight").dims, (std::vector<std::uint64_t>{64, 32}));
  EXPECT_EQ(g.tensors.at("blk.0.attn_k.weight").type, 1u);
  EXPECT_EQ(g.tensors.at("blk.0.attn_norm.weight").type, 0u);
}

ModelShape shape_of_architecture(const std::string& family) {
  ModelShape s = shape_of(family.c_str());
  if (family == "olmo2" || family == "phi3") s.tied = false;
  if (family == "smollm3") s.layers = 4, s.unturned_step = 4;
  if (family == "granite") s.multipliers = {.embedding = 12, .branch = 0.25, .logits_divisor = 8, .scores = 0.5};
  if (family == "gemma3_text") s.window = {.tokens = 16, .global_step = 6, .rope_theta = 10000};
  return s;
}

// Held against the tables of PyPI `gguf` by tests/peers/check_gguf.py.
TEST(Gguf, EachArchitectureHasItsNamesAndKeys) {
  const Scratch scratch;
  const std::map<std::string, std::vector<std::string>> named{
      {"mistral", {"llama", "attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down"}},
      {"smollm3", {"smollm3", "attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down"}},
      {"granite", {"granite", "attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down"}},
      {"olmo2",
       {"olmo2", "attn_q", "attn_k", "attn_v", "attn_q_norm", "attn_k_norm", "attn_output", "post_attention_norm", "ffn_gate", "ffn_up",
        "ffn_down", "post_ffw_norm"}},
      {"phi3", {"phi3", "attn_norm", "attn_qkv", "attn_output", "ffn_norm", "ffn_up", "ffn_down"}},
      {"gemma3_text",
       {"gemma3", "attn_norm", "attn_q", "attn_k", "attn_v", "attn_q_norm", "attn_k_norm", "attn_output", "post_attention_norm", "ffn_norm",
        "ffn_gate", "ffn_up", "ffn_down", "post_ffw_norm"}}};
  for (const auto& [family, names] : named) {
    const ModelShape shape = shape_of_architecture(family);
    const Gguf g = exported(scratch, shape, "gguf-f16");
    EXPECT_EQ(g.keys.at("general.architecture").text, names[0]);
    EXPECT_EQ(g.tensors.size(), (shape.tied ? 2 : 3) + std::size_t(shape.layers) * (names.size() - 1)) << family;
    for (std::size_t i = 1; i < names.size(); ++i) EXPECT_TRUE(g.tensors.contains("blk.1." + names[i] + ".weight")) << family << names[i];
    const float shift = family == "gemma3_text" ? 1 : 0;
    EXPECT_EQ(g.value_at("output_norm.weight", 3), wanted(3, 0) + shift) << family;
    for (const auto& [key, value] : {std::pair("granite.attention.scale", "0.5"),
                                     {"granite.embedding_scale", "12"},
                                     {"granite.residual_scale", "0.25"},
                                     {"granite.logit_scale", "8"},
                                     {"gemma3.attention.sliding_window", "16"},
                                     {"gemma3.rope.freq_base_swa", "10000"}}) {
      const bool own = std::string(key).starts_with(names[0] + ".");
      EXPECT_EQ(g.keys.contains(key), own) << family;
      if (own) EXPECT_EQ(g.keys.at(key).text, value) << key;
    }
  }
}

TEST(Gguf, ModelsThatLlamaCppComputesOtherwiseAreRefused) {
  const auto refusal = [](const char* family, void (*change)(ModelShape&)) {
    ModelShape s = shape_of_architecture(family);
    change(s);
    return error_of<ConfigError>([&] { require_gguf(s, {}); });
  };
  EXPECT_EQ(refusal("mistral", [](ModelShape& s) { s.window.tokens = 20; }),
            "models of family mistral have no GGUF form with sliding_window = 20, beyond which llama.cpp reads, too, unless "
            "max_position_embeddings = 32 is at most as large; export with another --dtype");
  EXPECT_EQ(refusal("llama", [](ModelShape& s) { s.biases.mlp = true; }),
            "mlp_bias = true: Octet writes no such biases to GGUF; export with another --dtype");
  EXPECT_TRUE(has(refusal("smollm3", [](ModelShape& s) { s.unturned_step = 3; }), "layers without rotations"));
  EXPECT_TRUE(has(refusal("olmo2", [](ModelShape& s) { s.tied = true; }), "wants a matrix of the head"));
  EXPECT_TRUE(has(refusal("phi3", [](ModelShape& s) { s.head_dim = 32; }), "llama.cpp wants 16"));
  EXPECT_TRUE(has(refusal("gemma3_text", [](ModelShape& s) { s.window.global_step = 4; }), "none in each layer 6"));
  EXPECT_TRUE(has(refusal("gemma3_text", [](ModelShape& s) { s.multipliers.scores = 1; }), "query_pre_attn_scalar"));
  EXPECT_TRUE(has(refusal("olmo2",
                          [](ModelShape& s) {
                            s.rope_scaling =
                                ops::RopeScaling{.factor = 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_max_position = 64};
                          }),
                  "does not stretch rotations of olmo2"));
}

// Pair i of a head of 16 is rows i and i + 8 here, and rows 2i and 2i + 1 in a Llama of llama.cpp. Others keep the order.
TEST(Gguf, QueriesAndKeysOfALlamaHavePairsAsNeighbours) {
  const Scratch scratch;
  const Gguf llama = exported(scratch, shape_of("llama"), "gguf-f16");
  const auto old_row = [](std::int64_t r) { return r / 16 * 16 + r % 2 * 8 + r % 16 / 2; };
  for (std::int64_t r = 0; r < 64; ++r)
    for (std::int64_t c = 0; c < 64; ++c) {
      EXPECT_EQ(llama.value_at("blk.1.attn_q.weight", std::uint64_t(r * 64 + c)), wanted(old_row(r), c)) << r << ", " << c;
      if (r >= 32) continue;
      EXPECT_EQ(llama.value_at("blk.1.attn_k.weight", std::uint64_t(r * 64 + c)), wanted(64 + old_row(r), c)) << r << ", " << c;
      EXPECT_EQ(llama.value_at("blk.1.attn_v.weight", std::uint64_t(r * 64 + c)), wanted(96 + r, c)) << r << ", " << c;
    }
  const Gguf qwen = exported(scratch, shape_of("qwen2"), "gguf-f16");
  for (std::int64_t r = 0; r < 64; ++r) EXPECT_EQ(qwen.value_at("blk.1.attn_q.weight", std::uint64_t(r * 64 + 5)), wanted(r, 5)) << r;
  EXPECT_EQ(qwen.tensors.at("blk.0.attn_q.bias").type, 0u);
  EXPECT_FALSE(qwen.tensors.contains("output.weight")) << "tied";
  EXPECT_TRUE(exported(scratch, shape_of("qwen3"), "gguf-f16").tensors.contains("blk.0.attn_q_norm.weight"));
}

// A block's factor is its largest magnitude / 127 in F16, a value the nearest whole multiple of the FP32 factor.
TEST(Gguf, BlocksOfEightBitsAreThoseOfGgml) {
  const Scratch scratch;
  const Gguf g = exported(scratch, shape_of("llama"), "gguf-q8_0");
  EXPECT_EQ(g.keys.at("general.file_type").text, "7");
  EXPECT_EQ(g.tensors.at("blk.0.ffn_up.weight").type, 8u);
  EXPECT_EQ(g.tensors.at("blk.0.ffn_down.weight").type, 1u) << "80 columns are no whole blocks";
  for (std::int64_t r = 0; r < 80; ++r)
    for (std::int64_t c = 0; c < 64; ++c) {
      float most = 0;
      for (std::int64_t i = c / 32 * 32; i < c / 32 * 32 + 32; ++i) most = std::max(most, std::fabs(wanted(80 + r, i)));
      const float factor = most / 127, q = std::round(wanted(80 + r, c) * (1 / factor));
      EXPECT_EQ(g.value_at("blk.1.ffn_up.weight", std::uint64_t(r * 64 + c)), to_float(to_fp16(factor)) * q) << r << ", " << c;
    }
}

TEST(Gguf, StretchedRotationsHaveTheirDivisors) {
  const Scratch scratch;
  ModelShape shape = shape_of("llama");
  shape.rope_scaling = ops::RopeScaling{.factor = 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_max_position = 64};
  const Gguf g = exported(scratch, shape, "gguf-f16");
  ASSERT_EQ(g.tensors.at("rope_freqs.weight").dims, std::vector<std::uint64_t>{8});
  EXPECT_EQ(g.value_at("rope_freqs.weight", 0), 1.0f);
  EXPECT_NEAR(g.value_at("rope_freqs.weight", 7), 8.0f, 1e-5);
}

TEST(Gguf, TokenizersKeepTokensMergesAndTheNameOfTheirPattern) {
  const Scratch scratch;
  tokenizer::TrainedBpe bpe{tokenizer::byte_tokens(), {}};
  bpe.tokens.emplace_back("ab");
  const auto byte = [&](const char* text) { return std::int32_t(std::ranges::find(bpe.tokens, text) - bpe.tokens.begin()); };
  bpe.merges.emplace_back(byte("a"), byte("b"));
  const auto keys = [&](std::string_view digits, const std::string& from = "", const std::string& to = "") {
    std::string json = tokenizer::tokenizer_json(bpe, std::string(tokenizer::pattern_with_digits(digits)), {"<|end|>"});
    if (!from.empty()) json.replace(json.find(from), from.size(), to);
    ModelShape shape = shape_of("qwen3");
    shape.vocabulary = 260;
    return exported(scratch, shape, "gguf-f16", {.config = {}, .files = {{"tokenizer.json", json}}}).keys;
  };
  EXPECT_EQ(keys("3").at("tokenizer.ggml.pre").text, "dbrx");
  EXPECT_EQ(keys("3", "\"ignore_merges\": false", "\"ignore_merges\": true").at("tokenizer.ggml.pre").text, "llama-bpe");
  EXPECT_EQ(keys("any").at("tokenizer.ggml.pre").text, "gpt-2");
  const auto own = keys("1");
  EXPECT_EQ(own.at("tokenizer.ggml.pre").text, "qwen2");
  EXPECT_EQ(own.at("tokenizer.ggml.merges").texts, std::vector<std::string>{"a b"});
  const std::vector<std::string>&tokens = own.at("tokenizer.ggml.tokens").texts, &kinds = own.at("tokenizer.ggml.token_type").texts;
  EXPECT_EQ((std::vector<std::string>(tokens.end() - 4, tokens.end())),
            (std::vector<std::string>{"ab", "<|end|>", "[PAD258]", "[PAD259]"}));
  EXPECT_EQ((std::vector<std::string>(kinds.end() - 4, kinds.end())), (std::vector<std::string>{"1", "3", "5", "5"}));
}

TEST(Gguf, ModelsAndValuesThatItCannotHoldAreRefused) {
  ModelShape gpt2 = shape_of("gpt2");
  EXPECT_TRUE(has(error_of<ConfigError>([&] { require_gguf(gpt2, {}); }), "family gpt2 have no GGUF form"));
  ModelShape other = shape_of("llama");
  other.vocabulary = 300;
  EXPECT_TRUE(has(error_of<ConfigError>([&] { require_gguf(other, {}); }), "has no tokenizer.json"));
  const std::string json = tokenizer::tokenizer_json({tokenizer::byte_tokens(), {}}, R"(\w+|\W)", {"<|end|>"});
  EXPECT_TRUE(has(error_of<ConfigError>([&] { require_gguf(other, {.config = {}, .files = {{"tokenizer.json", json}}}); }), "the pattern"));
  const Scratch scratch;
  Weights from(shape_of("llama"));
  from.parameters.list()[0]->value.values().f32()[3] = 1e5f;
  EXPECT_TRUE(
      has(error_of<DataError>([&] { save_gguf(scratch.at("x"), shape_of("llama"), from.parameters.list(), io::GgufType::f16, {}); }),
          "\"token_embd.weight\" has the value 100000"));
  EXPECT_EQ(scratch.entries(), 0u);
}

}  // namespace
}  // namespace octet::models
