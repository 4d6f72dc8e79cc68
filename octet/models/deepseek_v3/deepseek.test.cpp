#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>

#include "octet/base/file.hpp"
#include "octet/io/tensor_folder.hpp"
#include "octet/io/tensor_folder_writer.hpp"
#include "octet/json/value.hpp"
#include "octet/models/companions.hpp"
#include "octet/models/hugging_face.hpp"
#include "octet/models/registry.hpp"
#include "octet/models/rope_keys.hpp"
#include "tests/testing/scratch.hpp"

// Folders of DeepSeek's families: latents, biases of routers, codes, and blocks that are kept.

namespace octet::models {
namespace {

using testing::error_of, testing::has, testing::Scratch;

ModelShape shape_of(const std::string& config) {
  const Scratch scratch;
  write_file(scratch.at("config.json"), config);
  return read_hugging_face_shape(scratch.folder());
}

// Published config.json files, without keys that do not decide the shape.
const char* const v2_lite = R"({"architectures": ["DeepseekV2ForCausalLM"], "attention_bias": false, "aux_loss_alpha": 0.001,
  "first_k_dense_replace": 1, "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 10944, "kv_lora_rank": 512,
  "max_position_embeddings": 163840, "model_type": "deepseek_v2", "moe_intermediate_size": 1408, "moe_layer_freq": 1, "n_group": 1,
  "n_routed_experts": 64, "n_shared_experts": 2, "norm_topk_prob": false, "num_attention_heads": 16, "num_experts_per_tok": 6,
  "num_hidden_layers": 27, "num_key_value_heads": 16, "q_lora_rank": null, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
  "rms_norm_eps": 1e-06, "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 0.707, "mscale_all_dim": 0.707,
  "original_max_position_embeddings": 4096, "type": "yarn"}, "rope_theta": 10000, "routed_scaling_factor": 1.0,
  "scoring_func": "softmax", "seq_aux": true, "tie_word_embeddings": false, "topk_group": 1, "topk_method": "greedy",
  "v_head_dim": 128, "vocab_size": 102400})";
const char* const v3 = R"({"architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false, "first_k_dense_replace": 3,
  "hidden_act": "silu", "hidden_size": 7168, "intermediate_size": 18432, "kv_lora_rank": 512, "max_position_embeddings": 163840,
  "model_type": "deepseek_v3", "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 256,
  "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61,
  "num_key_value_heads": 128, "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
  "quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]},
  "rms_norm_eps": 1e-06, "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0,
  "original_max_position_embeddings": 4096, "type": "yarn"}, "rope_theta": 10000, "routed_scaling_factor": 2.5,
  "scoring_func": "sigmoid", "tie_word_embeddings": false, "topk_group": 4, "topk_method": "noaux_tc", "v_head_dim": 128,
  "vocab_size": 129280})";
const char* const moonlight = R"({"architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false, "aux_loss_alpha": 0.001,
  "first_k_dense_replace": 1, "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 11264, "kv_lora_rank": 512,
  "max_position_embeddings": 8192, "model_type": "deepseek_v3", "moe_intermediate_size": 1408, "moe_layer_freq": 1, "n_group": 1,
  "n_routed_experts": 64, "n_shared_experts": 2, "norm_topk_prob": true, "num_attention_heads": 16, "num_experts_per_tok": 6,
  "num_hidden_layers": 27, "num_key_value_heads": 16, "num_nextn_predict_layers": 0, "q_lora_rank": null, "qk_nope_head_dim": 128,
  "qk_rope_head_dim": 64, "rms_norm_eps": 1e-05, "rope_theta": 50000.0, "routed_scaling_factor": 2.446, "scoring_func": "sigmoid",
  "seq_aux": true, "tie_word_embeddings": false, "topk_group": 1, "topk_method": "noaux_tc", "v_head_dim": 128, "vocab_size": 163840})";

// A folder says nothing about the rate of biases, and V3's nothing about its loss.
TEST(DeepSeek, PublishedFilesAreTheNamedSizes) {
  EXPECT_EQ(shape_of(v2_lite), model_size("deepseek-v2-lite"));
  ModelShape large = model_size("deepseek-v3"), small = model_size("moonlight-16b-a3b");
  large.experts.balance.bias_rate = small.experts.balance.bias_rate = 0;
  large.experts.balance.loss = 0, small.experts.balance.loss = 0.001, large.kept_layers = 1;
  EXPECT_EQ(shape_of(v3), large);
  EXPECT_EQ(shape_of(moonlight), small);
}

TEST(DeepSeek, WhatTheModelsDoNotComputeIsRefusedByName) {
  const auto refusal = [](const char* published, std::string_view key, json::Value value) {
    json::Value config = json::parse({.text = published});
    config.set(key, std::move(value));
    return error_of<DataError>([&] { shape_of(config.dump()); });
  };
  EXPECT_TRUE(has(refusal(v2_lite, "attention_bias", true), "attention_bias must be false"));
  EXPECT_TRUE(has(refusal(v2_lite, "norm_topk_prob", true), "norm_topk_prob must be false"));
  EXPECT_TRUE(has(refusal(v2_lite, "scoring_func", "sigmoid"), "scoring_func must be \"softmax\""));
  EXPECT_TRUE(has(refusal(v2_lite, "topk_method", "random"), "topk_method must be \"greedy\" or \"group_limited_greedy\""));
  EXPECT_TRUE(has(refusal(v2_lite, "moe_layer_freq", 2), "moe_layer_freq must be 1"));
  EXPECT_TRUE(has(refusal(v3, "num_key_value_heads", 64), "num_key_value_heads must be num_attention_heads = 128"));
  EXPECT_TRUE(has(refusal(v3, "qk_rope_head_dim", 63), "qk_rope_head_dim must be even"));
  EXPECT_TRUE(has(refusal(v3, "kv_lora_rank", {}), "kv_lora_rank must be an integer"));
  EXPECT_TRUE(has(refusal(v3, "scoring_func", "softmax"), "scoring_func must be \"sigmoid\""));
  EXPECT_TRUE(has(refusal(v3, "topk_method", "greedy"), "topk_method must be \"noaux_tc\""));
}

ModelShape tiny(const std::string& family) {
  ModelShape s{.family = family, .width = 12, .layers = 2, .heads = 2, .kv_heads = 2, .head_dim = 10, .hidden = 14};
  s.vocabulary = 19, s.max_sequence = 32, s.norm_eps = 1e-6;
  s.latent = {.rank = 7, .turned = 4, .value_width = 8};
  s.experts = {.number = 3, .chosen = 2, .width = 5, .shared = 2, .first_dense = 1};
  s.experts.balance.over = nn::Balance::Over::sequence;
  if (family == "deepseek_v2") return s;
  s.latent.query_rank = 6, s.latent.pairs = ops::RopePairs::halves,
  s.rope_scaling = ops::RopeScaling{.kind = ops::RopeScaling::Kind::linear};
  s.experts.score = ops::Routing::Score::sigmoid, s.experts.normalize = true, s.experts.biased = true, s.experts.scaling = 2.5;
  return s;
}

/// A model with storage, its parameters all different, and the biases of its routers.
struct Weights {
  explicit Weights(const ModelShape& shape, std::uint64_t seed)
      : stream(Device::cpu), precision({.recipe = "fp32"}), model(make_model(shape, {}, precision)), parameters(stream, *model, false) {
    list = parameters.list();
    for (const std::int64_t layer : shape.layers_with_experts()) {
      Parameter& bias = biases.emplace_back(format("layers.{}.mlp.router.bias", layer), Shape{3}, Init{}, ParameterRole::vector);
      bias.value = Stored::plain({values[std::size_t(layer)].data(), bias.shape, DType::f32});
      if (shape.experts.biased) list.push_back(&bias);
    }
    for (Parameter* p : list) {
      Parameter normal(p->path, p->shape);
      normal.value = p->value;
      nn::initialize(stream, normal, seed);
    }
  }
  std::array<std::array<float, 3>, 4> values{};
  std::deque<Parameter> biases;
  Stream stream;
  scaling::Precision precision;
  std::unique_ptr<Model> model;
  nn::Parameters parameters;
  std::vector<Parameter*> list;
};

std::string listed(const std::string& folder) {
  const io::TensorFolder files = io::TensorFolder::open(folder);
  std::string out;
  for (const auto name : files.names()) {
    out += name;
    const io::TensorView tensor = files.tensor(name);
    for (const std::int64_t d : tensor.shape) out += " " + std::to_string(d);
    out += "\n";
  }
  return out;
}

TEST(DeepSeek, BothFamiliesSurviveARoundTripWithTheBiasesOfRouters) {
  for (const char* family : {"deepseek_v2", "deepseek_v3"}) {
    const Scratch scratch;
    const ModelShape shape = tiny(family);
    const Weights from(shape, 1);
    save_hugging_face(scratch.at("model"), shape, from.list);
    EXPECT_EQ(read_hugging_face_shape(scratch.at("model")), shape);
    Weights to(shape, 2);
    load_hugging_face(scratch.at("model"), shape, to.list);
    for (std::size_t i = 0; i < from.list.size(); ++i) {
      const bool padded = from.list[i]->path == "embedding.weight" || from.list[i]->path == "lm_head.weight";
      const std::size_t n = std::size_t(padded ? shape.vocabulary * shape.width : from.list[i]->shape.count());
      EXPECT_EQ(std::memcmp(from.list[i]->value.codes.data, to.list[i]->value.codes.data, n * sizeof(float)), 0) << from.list[i]->path;
    }
  }
}

TEST(DeepSeek, FoldersHaveTheNamesAndShapesOfTransformers) {
  const Scratch scratch;
  const ModelShape shape = tiny("deepseek_v3");
  const Weights weights(shape, 1);
  save_hugging_face(scratch.at("model"), shape, weights.list, DType::bf16);
  const std::string attention =
      ".self_attn.kv_a_layernorm.weight 7\nmodel.layers.0.self_attn.kv_a_proj_with_mqa.weight 11 12\n"
      "model.layers.0.self_attn.kv_b_proj.weight 28 7\nmodel.layers.0.self_attn.o_proj.weight 12 16\n"
      "model.layers.0.self_attn.q_a_layernorm.weight 6\nmodel.layers.0.self_attn.q_a_proj.weight 6 12\n"
      "model.layers.0.self_attn.q_b_proj.weight 20 6\n";
  const std::string all = listed(scratch.at("model"));
  EXPECT_TRUE(has(all, attention)) << all;
  EXPECT_TRUE(has(all,
                  "model.layers.1.mlp.gate.e_score_correction_bias 3\nmodel.layers.1.mlp.gate.weight 3 12\n"
                  "model.layers.1.mlp.shared_experts.down_proj.weight 12 10\nmodel.layers.1.mlp.shared_experts.gate_proj.weight 10 12\n"
                  "model.layers.1.mlp.shared_experts.up_proj.weight 10 12\n"))
      << all;
  const io::TensorFolder files = io::TensorFolder::open(scratch.at("model"));
  EXPECT_EQ(files.tensor("model.layers.1.mlp.gate.e_score_correction_bias").dtype, io::StoredDType::f32) << "BF16 would lose its steps";
  EXPECT_EQ(files.tensor("model.layers.1.mlp.gate.weight").dtype, io::StoredDType::bf16);
  const ModelShape direct = tiny("deepseek_v2");
  const Weights of_direct(direct, 1);
  save_hugging_face(scratch.at("direct"), direct, of_direct.list);
  EXPECT_TRUE(has(listed(scratch.at("direct")), "model.layers.0.self_attn.q_proj.weight 20 12\n"));
}

/// The folder of a model with codes in blocks, and behind its last block one with a module that predicts a second token.
struct Published {
  explicit Published(const Scratch& scratch) : shape(tiny("deepseek_v3")), weights(shape, 1) {
    save_hugging_face(scratch.at("first"), shape, weights.list, WeightForm::named("fp8-block128"));
    const io::TensorFolder first = io::TensorFolder::open(scratch.at("first"));
    std::vector<io::TensorSpec> specs;
    for (const auto name : first.names()) {
      const io::TensorView t = first.tensor(name);
      specs.push_back({std::string(name), t.dtype, {t.shape.begin(), t.shape.end()}});
    }
    specs.push_back({"model.layers.2.eh_proj.weight", io::StoredDType::e4m3, {3, 2}});
    specs.push_back({"model.layers.2.eh_proj.weight_scale_inv", io::StoredDType::f32, {1, 1}});
    specs.push_back({"model.layers.2.enorm.weight", io::StoredDType::bf16, {2}});
    io::TensorFolderWriter writer(scratch.at("model"), specs);
    for (const auto name : first.names()) writer.append(name, first.tensor(name).bytes);
    const float scale = 0.5f;
    writer.append("model.layers.2.eh_proj.weight", std::as_bytes(std::span(codes)));
    writer.append("model.layers.2.eh_proj.weight_scale_inv", std::as_bytes(std::span(&scale, 1)));
    writer.append("model.layers.2.enorm.weight", std::as_bytes(std::span(norm)));
    writer.commit();
    shape.kept_layers = 1;
    json::Value config = json::load(scratch.at("first/config.json"), config_limits);
    config.set("num_nextn_predict_layers", 1);
    write_file(scratch.at("model/config.json"), config.dump());
  }
  std::array<std::uint8_t, 6> codes{0x38, 0x40, 0x7E, 0xB8, 0x01, 0x00};  // 1, 2, 448, -1, 2^-9, 0
  std::array<std::uint16_t, 2> norm{0x3F80, 0x4000};
  ModelShape shape;
  Weights weights;
};

TEST(DeepSeek, BlocksThatPredictFurtherTokensAreKeptAsCodesAndAsValues) {
  const Scratch scratch;
  const Published published(scratch);
  ASSERT_EQ(read_hugging_face_shape(scratch.at("model")), published.shape);
  Weights to(published.shape, 2);
  load_hugging_face(scratch.at("model"), published.shape, to.list);
  const Companions companions = read_companions(scratch.at("model"));
  save_hugging_face(scratch.at("codes"), published.shape, to.list, WeightForm::named("fp8-block128"), companions);
  EXPECT_EQ(to_text(io::checksum_of(io::TensorFolder::open(scratch.at("codes")))),
            to_text(io::checksum_of(io::TensorFolder::open(scratch.at("model")))));
  EXPECT_TRUE(has(read_file(scratch.at("codes/config.json"), 1 << 20), "\"model.layers.2.enorm\""));

  save_hugging_face(scratch.at("values"), published.shape, to.list, DType::bf16, companions);
  const io::TensorFolder values = io::TensorFolder::open(scratch.at("values"));
  EXPECT_FALSE(values.find("model.layers.2.eh_proj.weight_scale_inv"));
  EXPECT_EQ(io::to_f32(values.tensor("model.layers.2.eh_proj.weight")), (std::vector<float>{0.5f, 1, 224, -0.5f, 0x1p-10f, 0}));
  EXPECT_EQ(io::to_f32(values.tensor("model.layers.2.enorm.weight")), (std::vector<float>{1, 2}));
}

// As in DeepSeek-V3's folder: model.layers.61, with its own copies of embedding and head.
TEST(DeepSeek, LayersThatPredictFurtherTokensAndTrainHaveTheNamesOfPublishedFolders) {
  const Scratch scratch;
  ModelShape shape = tiny("deepseek_v3");
  shape.mtp_depth = 1;
  const Weights from(shape, 1);
  save_hugging_face(scratch.at("model"), shape, from.list);
  const std::string all = listed(scratch.at("model"));
  for (const char* tensor : {"embed_tokens.weight 19 12", "enorm.weight 12", "hnorm.weight 12", "eh_proj.weight 12 24",
                             "shared_head.norm.weight 12", "shared_head.head.weight 19 12", "self_attn.q_a_proj.weight 6 12",
                             "input_layernorm.weight 12", "mlp.experts.2.down_proj.weight 12 5", "mlp.gate.e_score_correction_bias 3"})
    EXPECT_TRUE(has(all, "model.layers.2." + std::string(tensor) + "\n")) << tensor << "\n" << all;
  const io::TensorFolder files = io::TensorFolder::open(scratch.at("model"));
  EXPECT_EQ(io::to_f32(files.tensor("model.layers.2.shared_head.head.weight")), io::to_f32(files.tensor("lm_head.weight")));
  ModelShape read = read_hugging_face_shape(scratch.at("model"));
  EXPECT_EQ(read, shape.of_files()) << "a folder does not say which layers train";
  EXPECT_EQ(read.kept_layers, 1);
  Weights to(shape, 2);
  load_hugging_face(scratch.at("model"), shape, to.list);
  for (std::size_t i = 0; i < from.list.size(); ++i) {
    const Parameter &a = *from.list[i], &b = *to.list[i];
    const bool same = std::memcmp(a.value.codes.data, b.value.codes.data, std::size_t(a.shape.count()) * sizeof(float)) == 0;
    EXPECT_TRUE(same || !a.path.starts_with("layers.2.")) << a.path;
  }
  // Of a folder with codes, those of eh_proj have scales in blocks; norms, embedding and head are values.
  save_hugging_face(scratch.at("codes"), shape, from.list, WeightForm::named("fp8-block128"));
  EXPECT_TRUE(has(listed(scratch.at("codes")), "model.layers.2.eh_proj.weight_scale_inv 1 1\n"));
  load_hugging_face(scratch.at("codes"), shape, to.list);
}

TEST(DeepSeek, AFolderWhoseCopyOfTheHeadDiffersIsRefused) {
  const Scratch scratch;
  ModelShape shape = tiny("deepseek_v3");
  shape.mtp_depth = 1;
  const Weights from(shape, 1);
  save_hugging_face(scratch.at("first"), shape, from.list);
  const io::TensorFolder first = io::TensorFolder::open(scratch.at("first"));
  std::vector<io::TensorSpec> specs;
  for (const auto name : first.names()) {
    const io::TensorView t = first.tensor(name);
    specs.push_back({std::string(name), t.dtype, {t.shape.begin(), t.shape.end()}});
  }
  const std::string copy = "model.layers.2.shared_head.head.weight";
  io::TensorFolderWriter writer(scratch.at("model"), specs);
  for (const auto name : first.names()) writer.append(name, first.tensor(name == copy ? "model.embed_tokens.weight" : name).bytes);
  writer.commit();
  write_file(scratch.at("model/config.json"), read_file(scratch.at("first/config.json"), 1 << 20));
  Weights to(shape, 2);
  const std::string error = error_of<DataError>([&] { load_hugging_face(scratch.at("model"), shape, to.list); });
  EXPECT_TRUE(has(error, "\"" + copy + "\" differs from the head, which it repeats")) << error;
}

TEST(DeepSeek, ABlockThatConfigJsonDoesNotNameIsUnexpected) {
  const Scratch scratch;
  const Published published(scratch);
  ModelShape without = published.shape;
  without.kept_layers = 0;
  json::Value config = json::load(scratch.at("model/config.json"), config_limits);
  write_file(scratch.at("model/config.json"), config.set("num_nextn_predict_layers", 0).dump());
  Weights to(without, 2);
  const std::string error = error_of<DataError>([&] { load_hugging_face(scratch.at("model"), without, to.list); });
  EXPECT_TRUE(has(error, "tensor \"model.layers.2.eh_proj.weight\" is unexpected")) << error;
}

TEST(DeepSeek, ScalingsOfRotationsAreWrittenAsTheyAreRead) {
  using Kind = ops::RopeScaling::Kind;
  const ops::RopeScaling exact{.kind = Kind::yarn,
                               .factor = 4,
                               .high_freq_factor = 32,
                               .original_max_position = 64,
                               .mscale = 1,
                               .attention_factor = 1.5,
                               .truncate = false};
  for (const ops::RopeScaling& s :
       {exact, ops::RopeScaling{.kind = Kind::linear, .factor = 2}, ops::RopeScaling{.original_max_position = 64}}) {
    const Scratch scratch;
    ModelShape shape = tiny("deepseek_v3");
    shape.rope_scaling = s;
    const Weights weights(shape, 1);
    save_hugging_face(scratch.at("model"), shape, weights.list);
    EXPECT_EQ(read_hugging_face_shape(scratch.at("model")), shape) << rope_text(shape);
  }
}

}  // namespace
}  // namespace octet::models
