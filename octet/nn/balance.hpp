#pragma once

#include <cstdint>

namespace octet::nn {

/// The means that keep the experts of a model in balance. With counts c_e of the choices and sums s_e of the scores of E experts, K of which each
/// token chooses, over n tokens, a loss is
///
///   E sum_e (c_e / n)(s_e / n)            over `model`: of the tokens of all layers of a micro-batch together; over `layer`: of each
///                                         layer's tokens, the mean over layers. K at balance
///   E / K sum_e (c_e / n)(s_e / n)        over `sequence`: of each sequence in each layer, the mean over sequences, the sum over layers.
///                                         1 at balance
///
/// Gradients are those of the scores alone. Sources: Fedus et al. 2022, eq. 4, as transformers computes it for Mixtral, Qwen3-MoE and
/// OLMoE; DeepSeek-AI 2024, "DeepSeek-V3 Technical Report", eq. 17 to 20.
struct Balance {
  enum class Over : std::uint8_t { model, layer, sequence } over = Over::model;
  double loss = 0;       // coefficient of this loss; 0: none
  double z_loss = 0;     // of the mean over tokens, and sum over layers, of the squared log of the sum of exp(logits). Zoph et al. 2022
  double bias_rate = 0;  // step of each expert's bias after a step: ops::balance_bias
  bool operator==(const Balance&) const = default;
};

}  // namespace octet::nn
