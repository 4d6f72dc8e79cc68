#pragma once

#include <string>
#include <vector>

#include "octet/config/fields.hpp"
#include "octet/models/model.hpp"
#include "octet/nn/dropout_draws.hpp"
#include "octet/nn/partition.hpp"
#include "octet/ops/adapter_blocks/adapter_blocks.hpp"
#include "octet/scaling/precision.hpp"

namespace octet::models {

/// Adapters of low rank that train over a model's own weights, which then do not: nn::LowRankAdapter. The default form has none.
struct AdapterConfig {
  std::int64_t rank = 0;  // 0: no adapters
  double alpha = 16;      // an adapter's product is multiplied by alpha / rank
  std::vector<std::string> targets = {"all-linear"};
  double dropout = 0;  // probability of each value of an adapter's input, in training passes: nn::DroppedInput
  std::string init;    // a PEFT folder with the first values of adapters; empty: those of nn::LowRankAdapter

  explicit operator bool() const { return rank > 0; }
  double factor() const { return alpha / double(rank); }
  bool operator==(const AdapterConfig&) const = default;
  void fields(config::FieldVisitor&);
};

/// A linear module of a Hugging Face folder that has an adapter: its rows of a layer's weight.
struct AdaptedModule {
  std::string name;  // "model.layers.0.self_attn.q_proj"
  ops::RowBlock rows;
};
/// The modules of one weight, in the order of their rows. Their matrices are rows of nn::LowRankAdapter's two parameters. Of a stack they
/// are its experts, each with a matrix of nn::LowRankStack.
struct AdaptedWeight {
  std::string parameter;   // "layers.0.attn.qkv.weight"
  std::string stack = {};  // transformers' parameter of all experts: "model.layers.0.mlp.experts.gate_up_proj"; empty: linear modules
  std::vector<AdaptedModule> modules;
  std::int64_t out = 0, in = 0;
  bool transposed = false;  // the folder stores it as [in, out]

  std::string layer() const { return parameter.substr(0, parameter.rfind('.')); }
  std::string a() const { return stem() + "lora_a"; }
  std::string b() const { return stem() + "lora_b"; }
  std::int64_t rows() const;  // of all modules

 private:
  std::string stem() const { return parameter.substr(0, parameter.rfind("weight")); }
};

/// The weights that have adapters, in the order of the model. Layers that predict further tokens have none: PEFT's models do not have these
/// layers. A target is the name of a module or its end behind a point, as in PEFT, and
/// "all-linear" is every linear layer of blocks but experts and their routers. Experts have the names of transformers' parameters, as in
/// PEFT's target_parameters: "mlp.experts.gate_up_proj" and "mlp.experts.down_proj". Throws ConfigError naming lora.targets for one that
/// matches nothing, one expert, a router, or the head, lora.rank for one beyond a matrix, lora.dropout with experts, which PEFT does not
/// take, and for a family without a Hugging Face format.
std::vector<AdaptedWeight> adapted_weights(const ModelShape&, const AdapterConfig&);

/// Gives the model's layers these adapters; none without a rank. Before parameters get their memory. A member of the partition gets its
/// part of them, and a stage those of its blocks. The draws outlive the model.
void attach_adapters(Model&, const AdapterConfig&, scaling::Precision&, const nn::Partition&, const nn::DropoutDraws&);

/// Values of a weight's adapter in the host's memory.
struct AdapterValues {
  AdaptedWeight weight;
  std::vector<float> a, b;  // [modules * rank, in], [rows, rank]
};
/// Trained adapters of a model, apart from its weights. The default form has none.
struct TrainedAdapters {
  AdapterConfig config;
  std::vector<AdapterValues> values;

  explicit operator bool() const { return !values.empty(); }
};
/// W += alpha / rank * B A, in FP32 with products in FP64, of whole weights in the host's memory. Throws ContractError unless they are
/// there.
void merge_adapters(const TrainedAdapters&, const std::vector<Parameter*>&);

}  // namespace octet::models
