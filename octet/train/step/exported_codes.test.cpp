#include <gtest/gtest.h>

#include <cstring>

#include "octet/io/tensor_folder.hpp"
#include "octet/models/hugging_face.hpp"
#include "octet/models/stored_scales.hpp"
#include "octet/models/weight_codes.hpp"
#include "octet/nn/linear.hpp"
#include "octet/train/step/small_model.testing.hpp"
#include "octet/train/step/weights.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::train {
namespace {

using models::WeightForm;
using octet::testing::Scratch;

/// Rows of q and of gate and up are whole blocks of 128; those of k and v share one.
EngineConfig config_of(const std::string& recipe) {
  EngineConfig config = testing::small_engine("llama", recipe);
  config.shape.width = 144, config.shape.heads = 8, config.shape.hidden = 256;
  return config;
}

struct Collect final : nn::Visitor {
  std::vector<nn::LinearSite*> layers;
  void linear(nn::LinearSite& l) override { layers.push_back(&l); }
};

/// A tensor of the folder, and its place in an operand of the engine.
struct Place {
  std::string name, layer;
  std::int64_t first;
};
const Place places[] = {{"self_attn.q_proj", "attn.qkv", 0}, {"self_attn.k_proj", "attn.qkv", 128}, {"self_attn.v_proj", "attn.qkv", 160},
                        {"self_attn.o_proj", "attn.out", 0}, {"mlp.gate_proj", "mlp.gate_up", 0},   {"mlp.up_proj", "mlp.gate_up", 256},
                        {"mlp.down_proj", "mlp.down", 0}};

Quantized operand_of(Engine& e, const std::string& path) {
  Collect collect;
  e.model->visit(collect);
  for (nn::LinearSite* l : collect.layers)
    if (l->path() == path) return l->weight().operand(e.stream, nn::Weight::Side::rows);
  throw ContractError("no layer " + path);
}

struct Compared {
  bool codes = true, scales = true;
};

Compared compare(const io::TensorFolder& files, const std::string& name, const WeightForm& form, const Quantized& q, std::int64_t first) {
  const io::TensorView codes = files.tensor(name);
  const std::vector<float> scales = io::to_f32(files.tensor(name + std::string(form.scale_suffix())));
  const std::int64_t rows = codes.shape[0], columns = codes.shape[1], wide = models::blocks_of(columns, form.block().cols);
  EXPECT_FALSE(q.decoded);
  EXPECT_EQ(codes.dtype, io::StoredDType::e4m3);
  Compared out;
  out.codes = std::memcmp(codes.bytes.data(), q.codes.u8() + first * columns, std::size_t(rows * columns)) == 0;
  const DescaleStride stride = descale_stride(q.block, DType::f32, q.rows(), q.cols());
  const std::int64_t high = std::max(1, form.block().rows);
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const std::int64_t row = form.block().whole_tensor() ? 0 : first / high + std::int64_t(i) / wide;
    out.scales &= scales[i] == q.descales.f32()[row * stride.row_block + std::int64_t(i) % wide * stride.col_block];
  }
  return out;
}

struct Case {
  const char *recipe, *form;
  scaling::ScaleRounding scale = scaling::ScaleRounding::power_of_two;

  WeightForm weights() const {
    WeightForm out = WeightForm::named(form);
    if (scale == scaling::ScaleRounding::f32) out.rule = ScaleRule::quotient;
    return out;
  }
  EngineConfig config() const {
    EngineConfig out = config_of(recipe);
    out.precision.options.scale = scale;
    return out;
  }
};
const Case cases[] = {{"block128", "fp8-block128"},
                      {"rowwise", "fp8-channel"},
                      {"current", "fp8-tensor"},
                      {"block128", "fp8-block128", scaling::ScaleRounding::f32},
                      {"rowwise", "fp8-channel", scaling::ScaleRounding::f32}};

TEST(ExportedCodes, TheyAreThoseOfTheLastStepBitByBit) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.form);
    const Scratch scratch;
    Engine e(c.config(), Device::cpu, {});
    testing::train_steps(e, 3);
    e.quantize_weights(scaling::recomputing);
    const WeightForm form = c.weights();
    save_weights(e, scratch.at("out"), form);
    const io::TensorFolder files = io::TensorFolder::open(scratch.at("out"));
    const auto others = models::tensors_with_other_blocks(e.model->shape(), e.parameters.list(), form);
    EXPECT_EQ(others.size(), form.codes == WeightForm::Codes::blocks ? 4u : 0u);
    for (const std::string layer : {"layers.0.", "layers.1."})
      for (const Place& p : places) {
        const std::string name = "model." + layer + p.name + ".weight";
        if (std::ranges::find(others, name) != others.end()) continue;
        const Compared same = compare(files, name, form, operand_of(e, layer + p.layer), p.first);
        EXPECT_TRUE(same.codes && same.scales) << name << " codes " << same.codes << " scales " << same.scales;
      }
  }
}

TEST(ExportedCodes, AnEngineWithMastersOfCodesHasTheseCodesAgain) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.form);
    const Scratch scratch;
    Engine e(c.config(), Device::cpu, {});
    testing::train_steps(e, 2);
    const WeightForm form = c.weights();
    save_weights(e, scratch.at("first"), form);
    Engine of_codes(c.config(), Device::cpu, {});
    load_weights(of_codes, scratch.at("first"));
    save_weights(of_codes, scratch.at("second"), form);
    const auto sum = [&](const char* folder) { return to_text(io::checksum_of(io::TensorFolder::open(scratch.at(folder)))); };
    EXPECT_EQ(sum("first"), sum("second"));
    EXPECT_EQ(models::rule_of_scales(io::TensorFolder::open(scratch.at("first"))), form.rule);
    const std::vector<data::Batch> batch{testing::random_batch(2, 16, 61, 5)};
    StepRunner(of_codes).run(batch, {.learning_rate = 1e-3});  // trains
  }
}

TEST(ExportedCodes, StoredScalesAreThoseOfOperands) {
  const Scratch scratch;
  Engine e(config_of("current"), Device::cpu, {});
  testing::train_steps(e, 2);
  WeightForm form = WeightForm::named("fp8-tensor");
  for (const Parameter* p : e.parameters.list())
    if (p->path.starts_with("layers.") && p->shape.rank == 2) form.input_scales[p->path] = 0.01f * float(1 + form.input_scales.size());
  save_weights(e, scratch.at("out"), form);
  const io::TensorFolder files = io::TensorFolder::open(scratch.at("out"));

  EngineConfig config = config_of("delayed");
  config.precision.options.format = "e4m3", config.precision.options.history = 1;
  Engine frozen(config, Device::cpu, {});
  load_weights(frozen, files), load_scales(frozen, files);
  frozen.quantize_weights({});
  Collect collect;
  frozen.model->visit(collect);
  for (nn::LinearSite* l : collect.layers) {
    if (!l->path().starts_with("layers.")) continue;
    const float stored = form.input_scales.at(l->weight().parameter().path);
    EXPECT_EQ(value_at(l->spec(scaling::Operand::activation, {}).descale, 0), stored) << l->path();
  }
  for (const Place& p : places) {
    const std::string name = std::string("model.layers.1.") + p.name;
    const Compared same = compare(files, name + ".weight", form, operand_of(frozen, std::string("layers.1.") + p.layer), p.first);
    EXPECT_TRUE(same.codes && same.scales) << name;
    EXPECT_EQ(io::to_f32(files.tensor(name + ".input_scale"))[0], form.input_scales.at(std::string("layers.1.") + p.layer + ".weight"));
  }
}

// gate, up and down of an expert, and where their rows begin in its matrix of a stack.
const Place of_expert[] = {
    {"gate_proj", "mlp.experts.gate_up", 0}, {"up_proj", "mlp.experts.gate_up", 64}, {"down_proj", "mlp.experts.down", 0}};

EngineConfig experts_config(const std::string& recipe) {
  EngineConfig config = testing::small_engine("qwen3_moe", recipe);
  config.shape.width = 128, config.shape.head_dim = 32;
  config.shape.experts = {.number = 4, .chosen = 2, .width = 64, .normalize = true, .balance = {.loss = 0.01}};
  return config;
}

// A folder has a scale for each tensor of an expert: gate and up of one are one matrix, and have one.
void expect_codes_of_experts(Engine& e, const io::TensorFolder& files) {
  for (const std::string layer : {"layers.0.", "layers.1."})
    for (std::int64_t x = 0; x < 4; ++x)
      for (const Place& p : of_expert) {
        const Quantized q = operand_of(e, layer + p.layer);
        const std::string name = format("model.{}mlp.experts.{}.{}.weight", layer, x, p.name);
        const io::TensorView codes = files.tensor(name);
        const std::int64_t columns = codes.shape[1], first = x * (q.rows() / 4) + p.first;
        EXPECT_EQ(std::memcmp(codes.bytes.data(), q.codes.u8() + first * columns, codes.bytes.size()), 0) << name;
        EXPECT_EQ(io::to_f32(files.tensor(name + "_scale"))[0], q.descales.f32()[x]) << name;
      }
}

TEST(ExportedCodes, ExpertsHaveAScaleForEachOfTheirMatrices) {
  const Scratch scratch;
  Engine e(experts_config("current"), Device::cpu, {});
  testing::train_steps(e, 3);
  e.quantize_weights(scaling::recomputing);
  WeightForm form = WeightForm::named("fp8-tensor");
  for (const Parameter* p : e.parameters.list())
    if (p->path.starts_with("layers.") && p->shape.rank == 2) form.input_scales[p->path] = 0.01f;
  save_weights(e, scratch.at("out"), form);
  const io::TensorFolder files = io::TensorFolder::open(scratch.at("out"));
  expect_codes_of_experts(e, files);

  EngineConfig config = experts_config("delayed");
  config.precision.options.format = "e4m3", config.precision.options.history = 1;
  Engine frozen(config, Device::cpu, {});
  load_weights(frozen, files), load_scales(frozen, files);
  frozen.quantize_weights({});
  expect_codes_of_experts(frozen, files);
}

}  // namespace
}  // namespace octet::train
