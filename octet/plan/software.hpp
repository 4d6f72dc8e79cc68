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

/// Octet with states stored so, at a stage of ZeRO: docs/parallel.md. Gradients travel as they are stored. Memory of the run's own model
/// comes from dry runs instead.
Software octet_software(const optim::StateStorage&, std::int64_t zero, bool eight_bit);

/// The costs of encoding activations: blocks of their own scales multiply more slowly, and a maximum over a whole tensor that must
/// come first reads it once more.
void add_encoding(Software&, const ops::QuantizeSpec& activations);

}  // namespace octet::plan
