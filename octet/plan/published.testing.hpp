#pragma once

#include "octet/plan/software.hpp"

// The assumptions on programs whose memory and times are published.

namespace octet::plan {

inline constexpr double gib = 1024.0 * 1024 * 1024;

/// Megatron-LM of 2023 in BF16, with Transformer Engine's FP8, and with FP8-LM's level 3, as the authors of FP8-LM ran them: sequence
/// parallelism, flash attention, no dropout, a distributed optimizer, gradients added outside of GEMMs. Source: Azure/MS-AMP-Examples,
/// gpt3/pretrain_13b_megatron.sh. Operands, activations and logits are counted; fragmentation and fixed_bytes are fitted.
inline Software of_2023() {
  Software s;
  s.fragmentation = 0.02, s.fixed_bytes = 9 * gib;
  s.launch_microseconds = 300;  // eager PyTorch: about 100 kernels of a block
  s.attention_rate = 0.55;      // FlashAttention-2 beside cuDNN, as measured on an H200
  s.overlaps_tensor = false;
  s.passes = 12;  // a gradient is written in BF16, read, and added to an FP32 sum
  return s;
}

inline Software megatron_bf16() {
  Software s = of_2023();
  s.name = "Megatron-LM BF16";
  return s;
}

inline Software megatron_transformer_engine() {
  Software s = of_2023();
  s.name = "Megatron-LM with Transformer Engine", s.eight_bit = true;
  s.operands = 2;  // codes of both orientations, beside the BF16 weight; made once per step
  return s;
}

inline Software megatron_fp8_lm() {
  Software s = of_2023();
  s.name = "FP8-LM", s.eight_bit = true;
  s.weight = 1, s.operands = 1, s.gradient = 1, s.divided = 5;  // E4M3 weight and its transpose; master FP16, moments E4M3 and FP16
  s.sent_gradient = 1, s.sent_weight = 1;
  // A gradient is written in BF16, read for its maximum, and encoded (7); two passes add its codes (5). The weight is encoded in every
  // micro-batch: a maximum, codes and their transpose (6).
  s.passes = 18;
  return s;
}

/// Megatron Core as in NVIDIA's published figures of 2024 and 2025: communication under GEMMs, gradients added by GEMMs.
inline Software megatron_core(bool eight_bit) {
  Software s;
  s.name = eight_bit ? "Megatron Core FP8" : "Megatron Core BF16", s.eight_bit = eight_bit;
  s.operands = eight_bit ? 2 : 0;
  s.fragmentation = 0.05, s.fixed_bytes = 4 * gib;
  s.merged_bytes = 32;  // outputs and sums of exponentials in FP32, and gradients of queries
  return s;
}

/// Megatron Core with experts: DeepEP or HybridEP sends a row once to each node, and the host starts kernels of a block with experts, whose
/// sizes it reads from the device. In 8 bits, scales are per 1x128 block and rows are encoded again along tokens.
inline Software megatron_experts(bool eight_bit) {
  Software s = megatron_core(eight_bit);
  s.once_per_node = true, s.expert_launch_microseconds = 1500;
  // Encodings are kernels of their own; products of weights' gradients run at 0.37 of the others (torchao on an H100: 457 and 1,235).
  if (eight_bit) s.product_rate = 0.73, s.encoding_traffic = 0.3, s.expert_launch_microseconds = 2000;
  return s;
}

}  // namespace octet::plan
