#include "octet/models/hugging_face.hpp"

#include "octet/models/folders.testing.hpp"

namespace octet::models {
namespace {

using namespace testing;
using octet::testing::error_of;
using octet::testing::has;

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
