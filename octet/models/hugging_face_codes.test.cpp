#include <gtest/gtest.h>

#include <cstring>

#include "octet/base/error.hpp"
#include "octet/base/file.hpp"
#include "octet/io/tensor_folder.hpp"
#include "octet/io/tensor_folder_writer.hpp"
#include "octet/json/value.hpp"
#include "octet/models/hugging_face.hpp"
#include "octet/models/registry.hpp"
#include "octet/numerics/formats.hpp"
#include "tests/testing/scratch.hpp"

// Folders of E4M3 codes with scales, as others write them too.

namespace octet::models {
namespace {

using testing::error_of, testing::has, testing::Scratch;

struct Weights {
  explicit Weights(const ModelShape& shape)
      : stream(Device::cpu),
        precision(scaling::PrecisionConfig{.recipe = "fp32"}),
        model(make_model(shape, {}, precision)),
        parameters(stream, *model, false) {
    nn::initialize(stream, *parameters.list().front(), 1);
    for (Parameter* p : parameters.list()) {
      Parameter normal(p->path, p->shape);
      normal.value = p->value;
      nn::initialize(stream, normal, 3);
    }
  }
  const float* at(std::string_view path) const {
    for (const Parameter* p : parameters.list())
      if (p->path == path) return p->value.values().f32();
    throw ContractError(format("no parameter {}", path));
  }
  Stream stream;
  scaling::Precision precision;
  std::unique_ptr<Model> model;
  nn::Parameters parameters;
};

ModelShape qwen2() {
  return {.family = "qwen2",
          .width = 160,
          .layers = 1,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 40,
          .hidden = 144,
          .vocabulary = 61,
          .max_sequence = 32,
          .norm_eps = 1e-6,
          .rope_theta = 1e6,
          .tied = true};
}

struct Tensor8 {
  io::TensorSpec spec;
  std::vector<std::byte> bytes;
};

/// An exported folder, whose tensors and config.json can be changed.
struct Exported {
  explicit Exported(const char* form) : folder(scratch.at("model")), from(qwen2()) {
    save_hugging_face(folder, qwen2(), from.parameters, WeightForm::named(form));
  }
  template <class Change>
  void change(const std::string& name, Change change) {
    std::vector<Tensor8> tensors;
    {
      const io::TensorFolder files = io::TensorFolder::open(folder);
      for (const auto n : files.names()) {
        const io::TensorView t = *files.find(n);
        tensors.push_back({{std::string(n), t.dtype, {t.shape.begin(), t.shape.end()}}, {t.bytes.begin(), t.bytes.end()}});
        if (n == name) change(tensors.back());
      }
    }
    std::vector<io::TensorSpec> specs;
    for (const Tensor8& t : tensors) specs.push_back(t.spec);
    io::TensorFolderWriter writer(folder, specs);
    for (const Tensor8& t : tensors) writer.append(t.spec.name, t.bytes);
    writer.commit();
  }
  void configure(std::string_view from_text, std::string_view to_text) const {
    std::string text = read_file(folder + "/config.json", 1 << 20);
    const auto at = text.find(from_text);
    ASSERT_NE(at, std::string::npos) << text;
    write_file(folder + "/config.json", text.replace(at, from_text.size(), to_text));
  }
  std::string refusal() const {
    return error_of<DataError>([&] {
      Weights to(qwen2());
      load_hugging_face(folder, read_hugging_face_shape(folder), to.parameters);
    });
  }
  Scratch scratch;
  std::string folder;
  Weights from;
};

const std::string q = "model.layers.0.self_attn.q_proj.weight", down = "model.layers.0.mlp.down_proj.weight";

std::string shape_of(const io::TensorView& t) {
  std::string out(io::name(t.dtype));
  for (const std::int64_t d : t.shape) out += " " + std::to_string(d);
  return out;
}

TEST(HuggingFaceCodes, FormsHaveTheNamesTypesAndShapesOfOthers) {
  const auto listed = [](const char* form, const std::string& scale) {
    const Exported exported(form);
    const io::TensorFolder files = io::TensorFolder::open(exported.folder);
    EXPECT_EQ(shape_of(files.tensor("model.embed_tokens.weight")), "BF16 61 160");
    EXPECT_EQ(shape_of(files.tensor("model.norm.weight")), "BF16 160");
    EXPECT_EQ(shape_of(files.tensor("model.layers.0.self_attn.q_proj.bias")), "BF16 160");
    return shape_of(files.tensor(q)) + ", " + shape_of(files.tensor(q + scale));
  };
  EXPECT_EQ(listed("fp8-block128", "_scale_inv"), "F8_E4M3 160 160, F32 2 2");
  EXPECT_EQ(listed("fp8-channel", "_scale"), "F8_E4M3 160 160, F32 160 1");
  EXPECT_EQ(listed("fp8-tensor", "_scale"), "F8_E4M3 160 160, F32 1");
}

TEST(HuggingFaceCodes, ConfigurationsAreThoseOfOthers) {
  const auto config = [](const char* form) { return json::load(Exported(form).folder + "/config.json"); };
  EXPECT_EQ(config("fp8-block128").find("quantization_config")->dump(),
            R"({"quant_method":"fp8","fmt":"e4m3","activation_scheme":"dynamic","scale_fmt":"ue8m0","weight_block_size":[128,128],)"
            R"("modules_to_not_convert":["lm_head","model.embed_tokens","model.layers.0.input_layernorm",)"
            R"("model.layers.0.post_attention_layernorm","model.norm"]})");
  const json::Value channel = *config("fp8-channel").find("quantization_config");
  EXPECT_EQ(*channel.find("quant_method")->text(), "compressed-tensors");
  EXPECT_EQ(*channel.find("format")->text(), "float-quantized");
  EXPECT_EQ(channel.find("ignore")->dump(), R"(["lm_head"])");
  const json::Value* group = channel.find("config_groups")->find("group_0");
  EXPECT_EQ(*group->find("weights")->find("strategy")->text(), "channel");
  EXPECT_EQ(*group->find("input_activations")->find("dynamic")->boolean(), true);
  EXPECT_EQ(*config("fp8-tensor").find("torch_dtype")->text(), "bfloat16");
}

// A decoder of its own: value = code * scale of its block.
TEST(HuggingFaceCodes, MastersAreCodesTimesScales) {
  for (const char* form : {"fp8-block128", "fp8-channel", "fp8-tensor"}) {
    const Exported exported(form);
    Weights to(qwen2());
    load_hugging_face(exported.folder, qwen2(), to.parameters);
    const io::TensorFolder files = io::TensorFolder::open(exported.folder);
    const WeightForm f = WeightForm::named(form);
    const io::TensorView codes = files.tensor(down);
    const std::vector<float> scales = io::to_f32(files.tensor(down + std::string(f.scale_suffix())));
    const std::int64_t high = f.block().whole_tensor() ? 1 << 20 : f.block().rows, wide = f.block().cols == 0 ? 1 << 20 : f.block().cols;
    for (std::int64_t i = 0; i < codes.count(); ++i) {
      const std::int64_t row = i / 144, column = i % 144;
      const float scale = scales[std::size_t(row / high * ((144 + wide - 1) / wide) + column / wide)];
      const float value = decode<E4M3>(std::uint8_t(codes.bytes[std::size_t(i)])) * scale;
      ASSERT_NEAR(to.at("layers.0.mlp.down.weight")[i], value, std::abs(value) * 0x1p-21) << form;
      ASSERT_NEAR(exported.from.at("layers.0.mlp.down.weight")[i], value, scale * 16) << form;
    }
  }
}

TEST(HuggingFaceCodes, ScalesMayBePowersOfTwoInEightBitsOrBF16) {
  for (const io::StoredDType type : {io::StoredDType::e8m0, io::StoredDType::bf16}) {
    Exported exported("fp8-block128");
    Weights first(qwen2()), second(qwen2());
    load_hugging_face(exported.folder, qwen2(), first.parameters);
    exported.change(q + "_scale_inv", [&](Tensor8& t) {
      const std::vector<float> values = io::to_f32({t.spec.name, t.spec.dtype, t.spec.shape, t.bytes});
      t.spec.dtype = type, t.bytes.clear();
      if (type == io::StoredDType::bf16) t.bytes = io::from_f32(values, type);
      else
        for (const float x : values) t.bytes.push_back(std::byte(encode_e8m0(x)));
    });
    load_hugging_face(exported.folder, qwen2(), second.parameters);
    EXPECT_EQ(std::memcmp(first.at("layers.0.attn.qkv.weight"), second.at("layers.0.attn.qkv.weight"), 160 * 160 * 4), 0);
  }
}

TEST(HuggingFaceCodes, CompressedTensorsMayHaveBlocksToo) {
  Exported exported("fp8-block128");
  Weights first(qwen2()), second(qwen2());
  load_hugging_face(exported.folder, qwen2(), first.parameters);
  json::Value config = json::load(exported.folder + "/config.json");
  config.set("quantization_config", json::parse({.text = R"({"quant_method": "compressed-tensors", "format": "float-quantized",
    "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]}}}})"}));
  write_file(exported.folder + "/config.json", config.dump());
  for (const char* name :
       {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
    const std::string weight = std::string("model.layers.0.") + name + ".weight";
    exported.change(weight + "_scale_inv", [&](Tensor8& t) { t.spec.name = weight + "_scale"; });
  }
  load_hugging_face(exported.folder, qwen2(), second.parameters);
  EXPECT_EQ(std::memcmp(first.at("layers.0.attn.qkv.weight"), second.at("layers.0.attn.qkv.weight"), 160 * 160 * 4), 0);
}

TEST(HuggingFaceCodes, DamagedCodesAndScalesAreRefusedByTheNameOfTheirTensor) {
  const auto refused = [](const std::string& name, auto change) {
    Exported exported("fp8-block128");
    exported.change(name, change);
    const std::string message = exported.refusal();
    EXPECT_TRUE(has(message, "\"" + name + "\"")) << message;
    EXPECT_TRUE(message.starts_with(exported.folder)) << message;
    return message;
  };
  for (const float bad : {0.0f, -1.0f, float(INFINITY), float(NAN)})
    EXPECT_TRUE(has(refused(q + "_scale_inv", [&](Tensor8& t) { std::memcpy(&t.bytes[4], &bad, 4); }), "must be positive and finite"));
  for (const int code : {0x7F, 0xFF})
    EXPECT_TRUE(has(refused(down, [&](Tensor8& t) { t.bytes[77] = std::byte(code); }), "a code that is NaN"));
  EXPECT_TRUE(has(refused(q + "_scale_inv", [](Tensor8& t) { t.spec.shape = {4, 1}; }), "must be [2, 2]"));
  EXPECT_TRUE(has(refused(q + "_scale_inv", [](Tensor8& t) { t.spec.dtype = io::StoredDType::i32; }), "F8_E8M0"));
  EXPECT_TRUE(has(refused(q + "_scale_inv", [](Tensor8& t) { t.spec.dtype = io::StoredDType::e8m0, t.bytes.assign(4, std::byte(0xFF)); }),
                  "must be positive and finite"));
  Exported unnamed("fp8-block128");
  unnamed.change(q + "_scale_inv", [](Tensor8& t) { t.spec.name = "other"; });
  EXPECT_TRUE(has(unnamed.refusal(), "\"" + q + "_scale\" is missing")) << unnamed.refusal();
}

/// fp8-tensor with static scales of activations.
struct WithInputScales : Exported {
  WithInputScales() : Exported("fp8-tensor") {
    WeightForm form = WeightForm::named("fp8-tensor");
    for (const Parameter* p : from.parameters.list())
      if (p->path.starts_with("layers.") && p->shape.rank == 2) form.input_scales[p->path] = 0.25f;
    save_hugging_face(folder, qwen2(), from.parameters, form);
  }
};

TEST(HuggingFaceCodes, StaticScalesOfActivationsAreStoredAndRead) {
  WithInputScales exported;
  const io::TensorFolder files = io::TensorFolder::open(exported.folder);
  EXPECT_EQ(shape_of(files.tensor("model.layers.0.self_attn.q_proj.input_scale")), "F32 1");
  const json::Value config = json::load(exported.folder + "/config.json");
  const json::Value* activations = config.find("quantization_config")->find("config_groups")->find("group_0")->find("input_activations");
  EXPECT_EQ(*activations->find("dynamic")->boolean(), false);
  EXPECT_EQ(*activations->find("strategy")->text(), "tensor");
  Weights to(qwen2());
  load_hugging_face(exported.folder, qwen2(), to.parameters);
  const auto scales = layer_scales(files, qwen2(), to.parameters.list());
  ASSERT_EQ(scales.size(), 4u) << "qkv, out, gate_up, down";
  EXPECT_EQ(scales[3], (LayerScales{"layers.0.mlp.down.weight", 0.25f, {io::to_f32(files.tensor(down + "_scale"))[0]}}));
}

TEST(HuggingFaceCodes, DamagedStaticScalesAreRefusedByTheirName) {
  const std::string name = "model.layers.0.mlp.down_proj.input_scale";
  for (const float bad : {0.0f, -1.0f, float(INFINITY), float(NAN)}) {
    WithInputScales exported;
    exported.change(name, [&](Tensor8& t) { std::memcpy(t.bytes.data(), &bad, 4); });
    EXPECT_TRUE(has(exported.refusal(), "\"" + name + "\" has the scale")) << exported.refusal();
  }
  WithInputScales shaped;
  shaped.change(name, [&](Tensor8& t) { t.spec.shape = {2}, t.bytes.resize(8); });
  EXPECT_TRUE(has(shaped.refusal(), "\"" + name + "\" must be one number")) << shaped.refusal();
}

TEST(HuggingFaceCodes, FoldersWithoutStaticScalesAreRefusedWhereTheseAreAskedFor) {
  const auto refused = [](const Exported& exported) {
    return error_of<ConfigError>([&] { layer_scales(io::TensorFolder::open(exported.folder), qwen2(), exported.from.parameters.list()); });
  };
  EXPECT_TRUE(has(refused(Exported("fp8-tensor")), "q_proj.weight has no input_scale")) << refused(Exported("fp8-tensor"));
  EXPECT_TRUE(has(refused(Exported("fp8-block128")), "has a scale per block"));
  EXPECT_TRUE(has(refused(Exported("bf16")), "has no FP8 codes"));
  WithInputScales other;
  other.change("model.layers.0.self_attn.k_proj.input_scale", [&](Tensor8& t) { t.bytes[2] = std::byte(0xC0); });
  EXPECT_TRUE(has(refused(other), "k_proj.weight has other scales than its neighbours in layers.0.attn.qkv.weight")) << refused(other);
}

TEST(HuggingFaceCodes, OtherQuantizationsAreRefusedByTheirKeys) {
  const auto refused = [](const char* form, const char* from, const char* to) {
    const Exported exported(form);
    exported.configure(from, to);
    return exported.refusal();
  };
  EXPECT_TRUE(has(refused("fp8-block128", R"("quant_method": "fp8")", R"("quant_method": "gptq")"), "quantization_config.quant_method"));
  EXPECT_TRUE(has(refused("fp8-block128", R"("fmt": "e4m3")", R"("fmt": "e5m2")"), "quantization_config.fmt"));
  EXPECT_TRUE(has(refused("fp8-block128", "[128, 128]", "[128]"), "quantization_config.weight_block_size"));
  EXPECT_TRUE(has(refused("fp8-channel", "float-quantized", "pack-quantized"), "quantization_config.format"));
  EXPECT_TRUE(has(refused("fp8-block128", R"("quantization_config")", R"("was")"), "must be F32, BF16 or F16, it is F8_E4M3"));
}

TEST(HuggingFaceCodes, AnExportOfValuesHasNoQuantizationAndGpt2NoCodes) {
  const Exported exported("fp8-block128");
  Weights to(qwen2());
  load_hugging_face(exported.folder, qwen2(), to.parameters);
  const Companions companions = read_companions(exported.folder);
  save_hugging_face(exported.scratch.at("values"), qwen2(), to.parameters, DType::bf16, companions);
  EXPECT_EQ(json::load(exported.scratch.at("values/config.json")).find("quantization_config"), nullptr);
  ModelShape gpt2 = qwen2();
  gpt2.family = "gpt2", gpt2.kv_heads = gpt2.heads;
  EXPECT_TRUE(has(error_of<ConfigError>([&] { require_form(gpt2, WeightForm::named("fp8-channel")); }), "family gpt2"));
}

}  // namespace
}  // namespace octet::models
