#include "octet/models/folders.testing.hpp"

// Names and shapes of the tensors in folders, as transformers has them.

namespace octet::models {
namespace {

using namespace testing;

TEST(HuggingFaceNames, BiasesHaveTheNamesAndShapesOfLlamaForCausalLM) {
  ModelShape shape = llama();
  shape.biases = {.attention = true, .mlp = true};
  const std::string names = listed(Saved(shape).folder);
  for (const char* line : {"self_attn.q_proj.bias 18\n", "self_attn.k_proj.bias 6\n", "self_attn.v_proj.bias 6\n",
                           "self_attn.o_proj.bias 12\n", "mlp.gate_proj.bias 10\n", "mlp.up_proj.bias 10\n", "mlp.down_proj.bias 12\n"})
    EXPECT_NE(names.find(format("model.layers.1.{}", line)), std::string::npos) << line;
  shape.biases.mlp = false;
  EXPECT_EQ(listed(Saved(shape).folder).find("mlp.gate_proj.bias"), std::string::npos);
}

TEST(HuggingFaceNames, ExpertsAreOneTensorPerMatrixThere) {
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

TEST(HuggingFaceNames, LlamaHasTheNamesAndShapesOfLlamaForCausalLM) {
  std::string layers;
  for (const std::string l : {"model.layers.0.", "model.layers.1."})
    layers += l + "input_layernorm.weight 12\n" + l + "mlp.down_proj.weight 12 10\n" + l + "mlp.gate_proj.weight 10 12\n" + l +
              "mlp.up_proj.weight 10 12\n" + l + "post_attention_layernorm.weight 12\n" + l + "self_attn.k_proj.weight 6 12\n" + l +
              "self_attn.o_proj.weight 12 18\n" + l + "self_attn.q_proj.weight 18 12\n" + l + "self_attn.v_proj.weight 6 12\n";
  EXPECT_EQ(listed(Saved(llama()).folder), "lm_head.weight 21 12\nmodel.embed_tokens.weight 21 12\n" + layers + "model.norm.weight 12\n");
  EXPECT_EQ(listed(Saved(llama(true)).folder), "model.embed_tokens.weight 21 12\n" + layers + "model.norm.weight 12\n");
}

TEST(HuggingFaceNames, Qwen2HasTheNamesAndShapesOfQwen2ForCausalLM) {
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

TEST(HuggingFaceNames, Qwen3HasTheNamesAndShapesOfQwen3ForCausalLM) {
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

TEST(HuggingFaceNames, Gpt2HasTheNamesAndTransposedShapesOfGPT2LMHeadModel) {
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

TEST(HuggingFaceNames, RowsOfJoinedMatricesGoToTheirTensors) {
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

TEST(HuggingFaceNames, Gpt2LinearsAreStoredColumnByColumn) {
  const Saved saved(gpt2());
  const io::TensorFolder files = io::TensorFolder::open(saved.folder);
  const auto stored = to_f32(files.tensor("transformer.h.0.mlp.c_fc.weight"));             // [6, 5]
  const float* const ours = saved.from.at("layers.0.mlp.up.weight").value.values().f32();  // [5, 6]
  for (int in = 0; in < 6; ++in)
    for (int out = 0; out < 5; ++out) EXPECT_EQ(stored[std::size_t(in * 5 + out)], ours[out * 6 + in]);
}

}  // namespace
}  // namespace octet::models
