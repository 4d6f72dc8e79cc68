#include "octet/models/hugging_face.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "octet/base/error.hpp"
#include "octet/base/file.hpp"
#include "octet/json/value.hpp"
#include "octet/io/tensor_folder.hpp"
#include "octet/io/tensor_folder_writer.hpp"
#include "octet/models/registry.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::models {
namespace {

using testing::error_of;
using testing::has;
using testing::Scratch;

/// A model with storage, its parameters all different from their start (norms and biases too).
struct Weights {
  explicit Weights(const ModelShape& shape, std::uint64_t seed = 0)
      : stream(Device::cpu),
        precision(scaling::PrecisionConfig{.recipe = "fp32"}),
        model(make_model(shape, {}, precision)),
        parameters(stream, *model, false) {
    if (seed == 0) return;
    for (Parameter* p : parameters.list()) {
      Parameter normal(p->path, p->shape);
      normal.value = p->value;
      nn::initialize(stream, normal, seed);
    }
  }
  const Parameter& at(std::string_view path) const {
    for (const Parameter* p : parameters.list())
      if (p->path == path) return *p;
    throw ContractError(format("no parameter {}", path));
  }
  Stream stream;
  scaling::Precision precision;
  std::unique_ptr<Model> model;
  nn::Parameters parameters;
};

ModelShape llama(bool tied = false) {
  return {.family = "llama",
          .width = 12,
          .layers = 2,
          .heads = 3,
          .kv_heads = 1,
          .head_dim = 6,
          .hidden = 10,
          .vocabulary = 21,
          .max_sequence = 32,
          .norm_eps = 1e-5,
          .rope_theta = 500000,
          .rope_scaling = ops::RopeScaling{.factor = 32, .original_max_position = 16},
          .tied = tied};
}
ModelShape qwen2(bool tied = true) {
  return {.family = "qwen2",
          .width = 8,
          .layers = 1,
          .heads = 2,
          .kv_heads = 1,
          .head_dim = 4,
          .hidden = 6,
          .vocabulary = 17,
          .max_sequence = 32,
          .norm_eps = 1e-6,
          .rope_theta = 1e6,
          .tied = tied};
}
ModelShape qwen3(bool tied = false) {
  ModelShape s = qwen2(tied);
  s.family = "qwen3", s.head_dim = 6;
  return s;
}
ModelShape gpt2(bool tied = true) {
  return {.family = "gpt2",
          .width = 6,
          .layers = 1,
          .heads = 3,
          .kv_heads = 3,
          .head_dim = 2,
          .hidden = 5,
          .vocabulary = 19,
          .max_sequence = 7,
          .tied = tied};
}

// A dense block between two with experts.
ModelShape qwen3_moe(bool tied = false) {
  ModelShape s = qwen3(tied);
  s.family = "qwen3_moe", s.layers = 3;
  s.experts = {.number = 3, .chosen = 2, .width = 5, .normalize = true, .balance = {.loss = 0.25}, .dense = {1}};
  return s;
}
ModelShape olmoe(bool tied = false) {
  ModelShape s = qwen2(tied);
  s.family = "olmoe", s.hidden = 5, s.clip_qkv = 0.75, s.experts = {.number = 3, .chosen = 2, .width = 5, .balance = {.loss = 0.5}};
  return s;
}
ModelShape mixtral(bool tied = false) {
  ModelShape s = qwen2(tied);
  s.family = "mixtral", s.hidden = 5;
  s.experts = {.number = 3, .chosen = 2, .width = 5, .normalize = true, .balance = {.loss = 0.001}};
  return s;
}

// Other blocks: a window, layers without rotations, factors, norms behind branches, joined matrices, and most of these.
ModelShape mistral(bool tied = false) {
  ModelShape s = qwen3(tied);
  s.family = "mistral", s.window.tokens = 5;
  return s;
}
ModelShape smollm3(bool tied = true) {
  ModelShape s = qwen2(tied);
  s.family = "smollm3", s.layers = 3, s.unturned_step = 2;
  return s;
}
ModelShape granite(bool tied = true) {
  ModelShape s = qwen2(tied);
  s.family = "granite", s.multipliers = {.embedding = 3, .branch = 0.3, .logits_divisor = 7, .scores = 0.1};
  return s;
}
ModelShape olmo2(bool tied = false) {
  ModelShape s = qwen2(tied);
  s.family = "olmo2";
  return s;
}
ModelShape phi3(bool tied = false) {
  ModelShape s = qwen2(tied);
  s.family = "phi3", s.window.tokens = 3;
  return s;
}
ModelShape gemma3(bool tied = true) {
  ModelShape s = qwen3(tied);
  s.family = "gemma3_text", s.layers = 3, s.window = {.tokens = 4, .global_step = 2, .rope_theta = 100};
  s.multipliers = {.embedding = std::sqrt(8.0), .scores = 1 / std::sqrt(20.0)};
  return s;
}

/// "name [shape]" of every tensor in a folder, sorted by name.
std::string listed(const std::string& folder) {
  const io::TensorFolder files = io::TensorFolder::open(folder);
  std::string out;
  for (const auto name : files.names()) {
    out += name;
    const auto tensor = files.find(name);
    for (const std::int64_t d : tensor->shape) out += " " + std::to_string(d);
    out += "\n";
  }
  return out;
}

void expect_same(const Weights& a, const Weights& b, std::int64_t vocabulary) {
  for (const Parameter* p : a.parameters.list()) {
    const Parameter& q = b.at(p->path);
    const bool padded = p->path == "embedding.weight" || p->path == "lm_head.weight";
    const std::size_t n = std::size_t(padded ? vocabulary * p->shape[1] : p->shape.count());
    EXPECT_EQ(std::memcmp(p->value.codes.data, q.value.codes.data, n * sizeof(float)), 0) << p->path;
    for (std::size_t i = n; i < std::size_t(p->shape.count()); ++i) ASSERT_EQ(q.value.values().f32()[i], 0.0f) << p->path << " padding";
  }
}

void survives_a_round_trip(const ModelShape& shape) {
  const Scratch scratch;
  const std::string folder = scratch.at("deep/model");
  const Weights from(shape, 1);
  Weights to(shape, 2);
  const auto before = to.parameters.list().front()->version;
  save_hugging_face(folder, shape, from.parameters);
  load_hugging_face(folder, read_hugging_face_shape(folder), to.parameters);
  expect_same(from, to, shape.vocabulary);
  for (const Parameter* p : to.parameters.list()) EXPECT_GT(p->version, before) << p->path;
}

/// A tensor of a file, to be tampered with.
struct Stored {
  io::TensorSpec spec;
  std::vector<float> values;
};

Stored& named(std::vector<Stored>& tensors, std::string_view name) {
  for (Stored& t : tensors)
    if (t.spec.name == name) return t;
  throw ContractError(format("no tensor {}", name));
}

/// Writes a folder's weights again, as `change` leaves them.
template <class Change>
void rewrite(const std::string& folder, Change change, std::uint64_t shard_bytes = io::TensorFolderWriter::usual_shard_bytes) {
  std::vector<Stored> tensors;
  {
    const io::TensorFolder files = io::TensorFolder::open(folder);
    for (const auto name : files.names()) {
      const io::TensorView t = *files.find(name);
      tensors.push_back({{std::string(name), t.dtype, {t.shape.begin(), t.shape.end()}}, to_f32(t)});
    }
  }
  change(tensors);
  std::vector<io::TensorSpec> specs;
  for (const Stored& t : tensors) specs.push_back(t.spec);
  io::TensorFolderWriter writer(folder, specs, shard_bytes);
  for (const Stored& t : tensors)
    writer.append(t.spec.name, t.spec.dtype == io::StoredDType::i32 ? std::vector<std::byte>(t.values.size() * 4)
                                                                    : io::from_f32(t.values, t.spec.dtype));
  writer.commit();
}

/// Sets a key of a folder's config.json.
void configure(const std::string& folder, std::string_view key, json::Value value) {
  json::Value config = json::load(folder + "/config.json");
  write_file(folder + "/config.json", config.set(key, std::move(value)).dump());
}

/// A saved model of `shape` in a folder of its own.
struct Saved {
  explicit Saved(const ModelShape& shape) : shape(shape), folder(scratch.at("model")), from(shape, 1) {
    save_hugging_face(folder, shape, from.parameters);
  }
  Scratch scratch;
  ModelShape shape;
  std::string folder;
  Weights from;
};

TEST(HuggingFace, EveryFamilySurvivesARoundTripBitByBitTiedAndUntied) {
  for (const bool tied : {false, true})
    for (const ModelShape& shape : {llama(tied), qwen2(tied), qwen3(tied), gpt2(tied), qwen3_moe(tied), olmoe(tied), mixtral(tied),
                                    mistral(tied), smollm3(tied), granite(tied), olmo2(tied), phi3(tied), gemma3(tied)}) {
      SCOPED_TRACE(shape.family + (tied ? " tied" : " untied"));
      survives_a_round_trip(shape);
    }
}

TEST(HuggingFace, AFolderOfOtherBlocksHasTheirShape) {
  for (const ModelShape& shape : {qwen3_moe(), olmoe(), mixtral(), mistral(), smollm3(), granite(), olmo2(), phi3(), gemma3()})
    EXPECT_EQ(read_hugging_face_shape(Saved(shape).folder), shape) << shape.family;
}

/// Families whose files may have biases, each with all that it knows.
std::vector<ModelShape> biased_shapes() {
  std::vector<ModelShape> out{qwen3(), qwen3_moe(), olmoe(), olmo2(), gemma3(), llama(), granite(), smollm3()};
  for (std::size_t i = 0; i < out.size(); ++i) out[i].biases = {.attention = true, .mlp = i >= 5};
  return out;
}

TEST(HuggingFace, BiasesSurviveARoundTripBitByBit) {
  for (const ModelShape& shape : biased_shapes()) {
    SCOPED_TRACE(shape.family);
    EXPECT_EQ(read_hugging_face_shape(Saved(shape).folder).biases, shape.biases);
    survives_a_round_trip(shape);
  }
}

TEST(HuggingFace, BiasesHaveTheNamesAndShapesOfLlamaForCausalLM) {
  ModelShape shape = llama();
  shape.biases = {.attention = true, .mlp = true};
  const std::string names = listed(Saved(shape).folder);
  for (const char* line : {"self_attn.q_proj.bias 18\n", "self_attn.k_proj.bias 6\n", "self_attn.v_proj.bias 6\n",
                           "self_attn.o_proj.bias 12\n", "mlp.gate_proj.bias 10\n", "mlp.up_proj.bias 10\n", "mlp.down_proj.bias 12\n"})
    EXPECT_NE(names.find(format("model.layers.1.{}", line)), std::string::npos) << line;
  shape.biases.mlp = false;
  EXPECT_EQ(listed(Saved(shape).folder).find("mlp.gate_proj.bias"), std::string::npos);
}

TEST(HuggingFace, ExpertsAreOneTensorPerMatrixThere) {
  EXPECT_EQ(listed(Saved(mixtral()).folder),
            "lm_head.weight 17 8\n"
            "model.embed_tokens.weight 17 8\n"
            "model.layers.0.block_sparse_moe.experts.0.w1.weight 5 8\n"
            "model.layers.0.block_sparse_moe.experts.0.w2.weight 8 5\n"
            "model.layers.0.block_sparse_moe.experts.0.w3.weight 5 8\n"
            "model.layers.0.block_sparse_moe.experts.1.w1.weight 5 8\n"
            "model.layers.0.block_sparse_moe.experts.1.w2.weight 8 5\n"
            "model.layers.0.block_sparse_moe.experts.1.w3.weight 5 8\n"
            "model.layers.0.block_sparse_moe.experts.2.w1.weight 5 8\n"
            "model.layers.0.block_sparse_moe.experts.2.w2.weight 8 5\n"
            "model.layers.0.block_sparse_moe.experts.2.w3.weight 5 8\n"
            "model.layers.0.block_sparse_moe.gate.weight 3 8\n"
            "model.layers.0.input_layernorm.weight 8\n"
            "model.layers.0.post_attention_layernorm.weight 8\n"
            "model.layers.0.self_attn.k_proj.weight 4 8\n"
            "model.layers.0.self_attn.o_proj.weight 8 8\n"
            "model.layers.0.self_attn.q_proj.weight 8 8\n"
            "model.layers.0.self_attn.v_proj.weight 4 8\n"
            "model.norm.weight 8\n");
  const std::string names = listed(Saved(qwen3_moe()).folder);
  for (const char* line : {"model.layers.0.mlp.experts.2.up_proj.weight 5 8\n", "model.layers.0.mlp.gate.weight 3 8\n",
                           "model.layers.1.mlp.up_proj.weight 6 8\n", "model.layers.2.mlp.experts.0.down_proj.weight 8 5\n"})
    EXPECT_NE(names.find(line), std::string::npos) << line;
  EXPECT_NE(listed(Saved(olmoe()).folder).find("model.layers.0.self_attn.q_norm.weight 8\n"), std::string::npos) << "of all heads";
}

TEST(HuggingFace, LlamaHasTheNamesAndShapesOfLlamaForCausalLM) {
  std::string layers;
  for (const std::string l : {"model.layers.0.", "model.layers.1."})
    layers += l + "input_layernorm.weight 12\n" + l + "mlp.down_proj.weight 12 10\n" + l + "mlp.gate_proj.weight 10 12\n" + l +
              "mlp.up_proj.weight 10 12\n" + l + "post_attention_layernorm.weight 12\n" + l + "self_attn.k_proj.weight 6 12\n" + l +
              "self_attn.o_proj.weight 12 18\n" + l + "self_attn.q_proj.weight 18 12\n" + l + "self_attn.v_proj.weight 6 12\n";
  EXPECT_EQ(listed(Saved(llama()).folder), "lm_head.weight 21 12\nmodel.embed_tokens.weight 21 12\n" + layers + "model.norm.weight 12\n");
  EXPECT_EQ(listed(Saved(llama(true)).folder), "model.embed_tokens.weight 21 12\n" + layers + "model.norm.weight 12\n");
}

TEST(HuggingFace, Qwen2HasTheNamesAndShapesOfQwen2ForCausalLM) {
  EXPECT_EQ(listed(Saved(qwen2()).folder),
            "model.embed_tokens.weight 17 8\n"
            "model.layers.0.input_layernorm.weight 8\n"
            "model.layers.0.mlp.down_proj.weight 8 6\n"
            "model.layers.0.mlp.gate_proj.weight 6 8\n"
            "model.layers.0.mlp.up_proj.weight 6 8\n"
            "model.layers.0.post_attention_layernorm.weight 8\n"
            "model.layers.0.self_attn.k_proj.bias 4\n"
            "model.layers.0.self_attn.k_proj.weight 4 8\n"
            "model.layers.0.self_attn.o_proj.weight 8 8\n"
            "model.layers.0.self_attn.q_proj.bias 8\n"
            "model.layers.0.self_attn.q_proj.weight 8 8\n"
            "model.layers.0.self_attn.v_proj.bias 4\n"
            "model.layers.0.self_attn.v_proj.weight 4 8\n"
            "model.norm.weight 8\n");
}

TEST(HuggingFace, Qwen3HasTheNamesAndShapesOfQwen3ForCausalLM) {
  EXPECT_EQ(listed(Saved(qwen3()).folder),
            "lm_head.weight 17 8\n"
            "model.embed_tokens.weight 17 8\n"
            "model.layers.0.input_layernorm.weight 8\n"
            "model.layers.0.mlp.down_proj.weight 8 6\n"
            "model.layers.0.mlp.gate_proj.weight 6 8\n"
            "model.layers.0.mlp.up_proj.weight 6 8\n"
            "model.layers.0.post_attention_layernorm.weight 8\n"
            "model.layers.0.self_attn.k_norm.weight 6\n"
            "model.layers.0.self_attn.k_proj.weight 6 8\n"
            "model.layers.0.self_attn.o_proj.weight 8 12\n"
            "model.layers.0.self_attn.q_norm.weight 6\n"
            "model.layers.0.self_attn.q_proj.weight 12 8\n"
            "model.layers.0.self_attn.v_proj.weight 6 8\n"
            "model.norm.weight 8\n");
}

TEST(HuggingFace, Gpt2HasTheNamesAndTransposedShapesOfGPT2LMHeadModel) {
  EXPECT_EQ(listed(Saved(gpt2()).folder),
            "transformer.h.0.attn.c_attn.bias 18\n"
            "transformer.h.0.attn.c_attn.weight 6 18\n"
            "transformer.h.0.attn.c_proj.bias 6\n"
            "transformer.h.0.attn.c_proj.weight 6 6\n"
            "transformer.h.0.ln_1.bias 6\n"
            "transformer.h.0.ln_1.weight 6\n"
            "transformer.h.0.ln_2.bias 6\n"
            "transformer.h.0.ln_2.weight 6\n"
            "transformer.h.0.mlp.c_fc.bias 5\n"
            "transformer.h.0.mlp.c_fc.weight 6 5\n"
            "transformer.h.0.mlp.c_proj.bias 6\n"
            "transformer.h.0.mlp.c_proj.weight 5 6\n"
            "transformer.ln_f.bias 6\n"
            "transformer.ln_f.weight 6\n"
            "transformer.wpe.weight 7 6\n"
            "transformer.wte.weight 19 6\n");
}

TEST(HuggingFace, RowsOfJoinedMatricesGoToTheirTensors) {
  const Saved saved(llama());
  const io::TensorFolder files = io::TensorFolder::open(saved.folder);
  const auto first = [&](const char* name) { return to_f32(files.tensor(name)).front(); };
  const float* const qkv = saved.from.at("layers.1.attn.qkv.weight").value.values().f32();
  const float* const gate_up = saved.from.at("layers.1.mlp.gate_up.weight").value.values().f32();
  EXPECT_EQ(first("model.layers.1.self_attn.q_proj.weight"), qkv[0]);
  EXPECT_EQ(first("model.layers.1.self_attn.k_proj.weight"), qkv[18 * 12]);
  EXPECT_EQ(first("model.layers.1.self_attn.v_proj.weight"), qkv[24 * 12]);
  EXPECT_EQ(first("model.layers.1.mlp.gate_proj.weight"), gate_up[0]);
  EXPECT_EQ(first("model.layers.1.mlp.up_proj.weight"), gate_up[10 * 12]);
}

TEST(HuggingFace, Gpt2LinearsAreStoredColumnByColumn) {
  const Saved saved(gpt2());
  const io::TensorFolder files = io::TensorFolder::open(saved.folder);
  const auto stored = to_f32(files.tensor("transformer.h.0.mlp.c_fc.weight"));             // [6, 5]
  const float* const ours = saved.from.at("layers.0.mlp.up.weight").value.values().f32();  // [5, 6]
  for (int in = 0; in < 6; ++in)
    for (int out = 0; out < 5; ++out) EXPECT_EQ(stored[std::size_t(in * 5 + out)], ours[out * 6 + in]);
}

TEST(HuggingFace, MatricesLargerThanOnePortionSurvive) {
  ModelShape shape = gpt2();
  shape.vocabulary = 70'001, shape.width = 18, shape.head_dim = 6, shape.hidden = 60'001;  // over 2^20 elements, straight and transposed
  survives_a_round_trip(shape);
}

TEST(HuggingFace, Bf16WeightsAreTheNearestOnes) {
  const Scratch scratch;
  const Weights from(llama(), 1);
  Weights to(llama());
  save_hugging_face(scratch.at("m"), llama(), from.parameters, DType::bf16);
  load_hugging_face(scratch.at("m"), llama(), to.parameters);
  for (const Parameter* p : from.parameters.list()) {
    const std::int64_t rows = p->shape.rank == 2 && p->shape[0] == 32 ? 21 : p->shape[0];
    const std::int64_t n = rows * (p->shape.rank == 2 ? p->shape[1] : 1);
    for (std::int64_t i = 0; i < n; ++i)
      ASSERT_EQ(to.at(p->path).value.values().f32()[i], to_float(to_bf16(p->value.values().f32()[i]))) << p->path;
  }
}

TEST(HuggingFace, HalfPrecisionShardedAndHeadlessFilesAreRead) {
  const Saved saved(gpt2());
  rewrite(
      saved.folder,
      [](std::vector<Stored>& all) {
        for (Stored& t : all) {
          t.spec.dtype = has(t.spec.name, "attn") ? io::StoredDType::f16 : io::StoredDType::bf16;
          t.spec.name = t.spec.name.substr(std::string("transformer.").size());
        }
      },
      200);
  EXPECT_TRUE(std::filesystem::exists(saved.folder + "/model.safetensors.index.json"));
  Weights to(gpt2());
  load_hugging_face(saved.folder, gpt2(), to.parameters);
  for (const Parameter* p : to.parameters.list()) {
    const float x = saved.from.at(p->path).value.values().f32()[1];
    EXPECT_EQ(p->value.values().f32()[1], has(p->path, "attn") ? to_float(to_fp16(x)) : to_float(to_bf16(x))) << p->path;
  }
}

TEST(HuggingFace, ConstantsOfOldFilesAreNotRead) {
  const Saved saved(gpt2());
  rewrite(saved.folder, [](std::vector<Stored>& all) {
    all.push_back({{"transformer.h.0.attn.bias", io::StoredDType::f32, {1, 1, 2, 2}}, {1, 0, 1, 1}});
    all.push_back({{"transformer.h.0.attn.masked_bias", io::StoredDType::f32, {}}, {-1e4f}});
  });
  Weights to(gpt2());
  load_hugging_face(saved.folder, gpt2(), to.parameters);
  expect_same(saved.from, to, 19);
}

TEST(HuggingFace, ATiedHeadMayStandInTheFileWhenItIsTheEmbedding) {
  const Saved saved(qwen2(false));
  configure(saved.folder, "tie_word_embeddings", true);
  Weights to(qwen2());
  const std::string error = error_of<DataError>([&] { load_hugging_face(saved.folder, qwen2(), to.parameters); });
  EXPECT_TRUE(has(error, "\"lm_head.weight\" differs from the embedding")) << error;
  rewrite(saved.folder,
          [](std::vector<Stored>& all) { named(all, "lm_head.weight").values = named(all, "model.embed_tokens.weight").values; });
  load_hugging_face(saved.folder, qwen2(), to.parameters);
  EXPECT_EQ(to.at("embedding.weight").value.values().f32()[5], saved.from.at("embedding.weight").value.values().f32()[5]);
}

TEST(HuggingFace, MissingUnexpectedAndMisshapenTensorsAreNamed) {
  const auto error_after = [](auto change) {
    const Saved saved(llama());
    rewrite(saved.folder, change);
    Weights to(llama());
    return error_of<DataError>([&] { load_hugging_face(saved.folder, llama(), to.parameters); });
  };
  const auto missing = error_after([](auto& all) { named(all, "model.norm.weight").spec.name = "model.normm.weight"; });
  EXPECT_TRUE(has(missing, "tensor \"model.norm.weight\" is missing") && has(missing, "model.normm.weight")) << missing;
  const auto headless = error_after([](auto& all) { named(all, "lm_head.weight").spec.name = "score.weight"; });
  EXPECT_TRUE(has(headless, "\"lm_head.weight\" is missing")) << headless;
  const auto unexpected = error_after([](auto& all) {
    all.push_back({{"model.layers.2.input_layernorm.weight", io::StoredDType::f32, {1}}, {0}});
  });
  EXPECT_TRUE(has(unexpected, "\"model.layers.2.input_layernorm.weight\" is unexpected")) << unexpected;
  const auto shape = error_after([](auto& all) { named(all, "model.layers.1.mlp.down_proj.weight").spec.shape = {10, 12}; });
  EXPECT_TRUE(has(shape, "\"model.layers.1.mlp.down_proj.weight\" must be [12, 10] according to config.json, it is [10, 12]")) << shape;
  const auto rank = error_after([](auto& all) { named(all, "model.norm.weight").spec.shape = {1, 12}; });
  EXPECT_TRUE(has(rank, "\"model.norm.weight\" must be [12] according to config.json, it is [1, 12]")) << rank;
  const auto type = error_after([](auto& all) { named(all, "model.norm.weight").spec.dtype = io::StoredDType::i32; });
  EXPECT_TRUE(has(type, "\"model.norm.weight\" must be F32, BF16 or F16, it is I32")) << type;
}

TEST(HuggingFace, ARefusedFolderLeavesTheParametersAlone) {
  const Saved saved(llama());
  rewrite(saved.folder, [](auto& all) { named(all, "model.norm.weight").spec.name = "model.normm.weight"; });
  Weights to(llama(), 7);
  const Weights same(llama(), 7);
  EXPECT_THROW(load_hugging_face(saved.folder, llama(), to.parameters), DataError);
  for (const Parameter* p : to.parameters.list())
    EXPECT_EQ(std::memcmp(p->value.codes.data, same.at(p->path).value.codes.data, p->value.bytes()), 0) << p->path;
}

TEST(HuggingFace, AnotherShapeThanTheFoldersIsAConfigErrorThatListsTheDifferences) {
  const Saved saved(llama());
  ModelShape other = llama();
  other.layers = 1, other.rope_theta = 10000;
  Weights to(other);
  const std::string error = error_of<ConfigError>([&] { load_hugging_face(saved.folder, other, to.parameters); });
  EXPECT_TRUE(has(error, "layers = 2 and not 1, rope_theta = 500000 and not 10000;")) << error;
  // Longer contexts than the file's are a user's choice where positions are not learned.
  other = llama();
  other.max_sequence = 64;
  Weights longer(other);
  load_hugging_face(saved.folder, other, longer.parameters);
}

TEST(HuggingFace, AnExportReplacesAnExportAndNothingElse) {
  const Saved saved(llama());
  const Weights other(qwen2(), 3);
  save_hugging_face(saved.folder, qwen2(), other.parameters);
  EXPECT_EQ(read_hugging_face_shape(saved.folder).family, "qwen2");
  EXPECT_EQ(saved.scratch.entries(), 1u);

  write_file(saved.folder + "/notes.txt", "mine");
  const std::string error = error_of<ConfigError>([&] { save_hugging_face(saved.folder, llama(), saved.from.parameters); });
  EXPECT_TRUE(has(error, "contains 'notes.txt'")) << error;
  EXPECT_EQ(read_file(saved.folder + "/notes.txt", 10), "mine");
  EXPECT_EQ(read_hugging_face_shape(saved.folder).family, "qwen2");
}

TEST(HuggingFace, ShapesThatTransformersWouldNotLoadAreRefusedBeforeTraining) {
  ModelShape shape = gpt2();
  shape.kv_heads = 1;
  EXPECT_TRUE(has(error_of<ConfigError>([&] { Weights w(shape); }), "model.kv_heads = 1 must be model.heads = 3"));
  shape = gpt2(), shape.head_dim = 4;
  EXPECT_TRUE(has(error_of<ConfigError>([&] { Weights w(shape); }), "model.width = 6 must be model.heads x model.head_width = 3 x 4"));
  shape = llama(), shape.width = 16;
  EXPECT_TRUE(has(error_of<ConfigError>([&] { Weights w(shape); }), "model.width = 16 must be a multiple of model.heads = 3"));
}

}  // namespace
}  // namespace octet::models
