#pragma once

#include <string>

#include "octet/ops/quantize/spec.hpp"
#include "octet/optim/level.hpp"

namespace octet::plan {

/// The assumptions on a training program that memory and time depend on: bytes per parameter, per logit and per GPU. One set per program,
/// written in docs/parallelism-guide.md; none depends on a model or a layout.
struct Software {
  std::string name;
  bool eight_bit = false;
  // With 8-bit operands: of the rate of products with one scale per tensor, and added to MachineConstants::eight_bit_traffic.
  double product_rate = 1, encoding_traffic = 0;

  // Bytes per parameter of the matrices of blocks. `divided` is divided among the ranks of ZeRO-1.
  double weight = 2, operands = 0, gradient = 4, divided = 12;
  // Of embedding and head, whose gradients have 4 bytes.
  double end_weight = 2, end_divided = 12;

  // Bytes that a parameter of a block sends per optimizer step on the data axis, as gradient and as weight.
  double sent_gradient = 4, sent_weight = 2;
  // Bytes read and written per parameter and micro-batch besides GEMMs: sums of gradients, casts.
  double passes = 0;
  double launch_microseconds = 0;  // per block and micro-batch that no computation hides, besides the machine's
  bool overlaps_tensor = true;     // tensor-parallel transfers run under GEMMs
  double attention_rate = 1;       // of that of the machine

  double merged_bytes = 0;  // per column of queries: where keys travel in a ring, partial results of each further rank are added

  // A token's row to experts of other ranks: how often in a step without recomputation, as codes or in BF16, and whether it goes once to
  // each node, once per choice, or once to each rank.
  double rows_to_experts = 2, expert_launch_microseconds = 0;
  bool sends_codes_to_experts = false, once_per_node = false, row_per_choice = false;

  // Tensor ranks have copies of experts, routers and shared experts: blocks with experts exchange rows in attention alone, and ranks sum
  // the gradients of copies. Otherwise the ranks that divide experts and their state include tensor ranks.
  bool copies_experts = false;

  double logit_bytes = 16;   // per logit of a micro-batch, at the peak
  double fragmentation = 0;  // of all tensors
  double fixed_bytes = 0;    // per GPU: context of the driver, libraries, communicators, allocator
};

/// Megatron-LM of 2023 in BF16, with Transformer Engine's FP8, and with FP8-LM's level 3, as the authors of FP8-LM ran them: sequence
/// parallelism, flash attention, no dropout, a distributed optimizer, gradients added outside of GEMMs. Source: Azure/MS-AMP-Examples,
/// gpt3/pretrain_13b_megatron.sh. Operands, activations and logits are counted; fragmentation and fixed_bytes are fitted.
Software megatron_bf16();
Software megatron_transformer_engine();
Software megatron_fp8_lm();

/// Octet with states stored so, at a stage of ZeRO: docs/parallel.md. Gradients travel as they are stored. Memory of the run's own model
/// comes from dry runs instead.
Software octet_software(const optim::StateStorage&, std::int64_t zero, bool eight_bit);

/// The costs of encoding activations: blocks of their own scales multiply more slowly, and a maximum over a whole tensor that must
/// come first reads it once more.
void add_encoding(Software&, const ops::QuantizeSpec& activations);

/// Megatron Core with experts: DeepEP or HybridEP sends a row once to each node, and the host starts kernels of a block with experts, whose
/// sizes it reads from the device. In 8 bits, scales are per 1x128 block and rows are encoded again along tokens.
Software megatron_experts(bool eight_bit);

/// Megatron Core as in NVIDIA's published figures of 2024 and 2025: communication under GEMMs, gradients added by GEMMs.
Software megatron_core(bool eight_bit);

}  // namespace octet::plan
