#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "octet/base/error.hpp"
#include "octet/base/file.hpp"
#include "octet/json/value.hpp"
#include "octet/io/tensor_folder.hpp"
#include "octet/io/tensor_folder_writer.hpp"
#include "octet/models/hugging_face.hpp"
#include "octet/models/registry.hpp"
#include "tests/testing/scratch.hpp"

// Small models of each family, their folders, and changes of these.

namespace octet::models::testing {

using octet::testing::Scratch;

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

inline ModelShape llama(bool tied = false) {
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
inline ModelShape qwen2(bool tied = true) {
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
inline ModelShape qwen3(bool tied = false) {
  ModelShape s = qwen2(tied);
  s.family = "qwen3", s.head_dim = 6;
  return s;
}
inline ModelShape gpt2(bool tied = true) {
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
inline ModelShape qwen3_moe(bool tied = false) {
  ModelShape s = qwen3(tied);
  s.family = "qwen3_moe", s.layers = 3;
  s.experts = {.number = 3, .chosen = 2, .width = 5, .normalize = true, .balance = {.loss = 0.25}, .dense = {1}};
  return s;
}
inline ModelShape olmoe(bool tied = false) {
  ModelShape s = qwen2(tied);
  s.family = "olmoe", s.hidden = 5, s.clip_qkv = 0.75, s.experts = {.number = 3, .chosen = 2, .width = 5, .balance = {.loss = 0.5}};
  return s;
}
inline ModelShape mixtral(bool tied = false) {
  ModelShape s = qwen2(tied);
  s.family = "mixtral", s.hidden = 5;
  s.experts = {.number = 3, .chosen = 2, .width = 5, .normalize = true, .balance = {.loss = 0.001}};
  return s;
}

// Other blocks: a window, layers without rotations, factors, norms behind branches, joined matrices, and most of these.
inline ModelShape mistral(bool tied = false) {
  ModelShape s = qwen3(tied);
  s.family = "mistral", s.window.tokens = 5;
  return s;
}
inline ModelShape smollm3(bool tied = true) {
  ModelShape s = qwen2(tied);
  s.family = "smollm3", s.layers = 3, s.unturned_step = 2;
  return s;
}
inline ModelShape granite(bool tied = true) {
  ModelShape s = qwen2(tied);
  s.family = "granite", s.multipliers = {.embedding = 3, .branch = 0.3, .logits_divisor = 7, .scores = 0.1};
  return s;
}
inline ModelShape olmo2(bool tied = false) {
  ModelShape s = qwen2(tied);
  s.family = "olmo2";
  return s;
}
inline ModelShape phi3(bool tied = false) {
  ModelShape s = qwen2(tied);
  s.family = "phi3", s.window.tokens = 3;
  return s;
}
inline ModelShape gemma3(bool tied = true) {
  ModelShape s = qwen3(tied);
  s.family = "gemma3_text", s.layers = 3, s.window = {.tokens = 4, .global_step = 2, .rope_theta = 100};
  s.multipliers = {.embedding = std::sqrt(8.0), .scores = 1 / std::sqrt(20.0)};
  return s;
}

/// "name [shape]" of every tensor in a folder, sorted by name.
inline std::string listed(const std::string& folder) {
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

inline void expect_same(const Weights& a, const Weights& b, std::int64_t vocabulary) {
  for (const Parameter* p : a.parameters.list()) {
    const Parameter& q = b.at(p->path);
    const bool padded = p->path == "embedding.weight" || p->path == "lm_head.weight";
    const std::size_t n = std::size_t(padded ? vocabulary * p->shape[1] : p->shape.count());
    EXPECT_EQ(std::memcmp(p->value.codes.data, q.value.codes.data, n * sizeof(float)), 0) << p->path;
    for (std::size_t i = n; i < std::size_t(p->shape.count()); ++i) ASSERT_EQ(q.value.values().f32()[i], 0.0f) << p->path << " padding";
  }
}

inline void survives_a_round_trip(const ModelShape& shape) {
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

inline Stored& named(std::vector<Stored>& tensors, std::string_view name) {
  for (Stored& t : tensors)
    if (t.spec.name == name) return t;
  throw ContractError(format("no tensor {}", name));
}

/// Writes a folder's weights again, as `change` leaves them.
template <class Change>
inline void rewrite(const std::string& folder, Change change, std::uint64_t shard_bytes = io::TensorFolderWriter::usual_shard_bytes) {
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
inline void configure(const std::string& folder, std::string_view key, json::Value value) {
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

}  // namespace octet::models::testing
