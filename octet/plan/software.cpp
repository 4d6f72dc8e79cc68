#include "octet/plan/software.hpp"

namespace octet::plan {
namespace {

constexpr double gib = 1024.0 * 1024 * 1024;

Software of_2023() {
  Software s;
  s.fragmentation = 0.02, s.fixed_bytes = 9 * gib;
  s.launch_microseconds = 300;  // eager PyTorch: about 100 kernels of a block
  s.attention_rate = 0.55;      // FlashAttention-2 beside cuDNN, as measured on an H200
  s.overlaps_tensor = false;
  s.passes = 12;  // a gradient is written in BF16, read, and added to an FP32 sum
  return s;
}

}  // namespace

Software megatron_bf16() {
  Software s = of_2023();
  s.name = "Megatron-LM BF16";
  return s;
}

Software megatron_transformer_engine() {
  Software s = of_2023();
  s.name = "Megatron-LM with Transformer Engine", s.eight_bit = true;
  s.operands = 2;  // codes of both orientations, beside the BF16 weight; made once per step
  return s;
}

Software megatron_fp8_lm() {
  Software s = of_2023();
  s.name = "FP8-LM", s.eight_bit = true;
  s.weight = 1, s.operands = 1, s.gradient = 1, s.divided = 5;  // E4M3 weight and its transpose; master FP16, moments E4M3 and FP16
  s.sent_gradient = 1, s.sent_weight = 1;
  // A gradient is written in BF16, read for its maximum, and encoded (7); two passes add its codes (5). The weight is encoded in every
  // micro-batch: a maximum, codes and their transpose (6).
  s.passes = 18;
  return s;
}

Software octet_software(const optim::StateStorage& storage, std::int64_t zero, bool eight_bit) {
  const auto bytes = [](Storage x) { return double(size_of(code_type(x))); };
  Software s;
  s.name = "Octet", s.eight_bit = eight_bit;
  s.gradient = bytes(storage.gradients), s.sent_gradient = s.gradient, s.sent_weight = eight_bit ? 1 : 2;
  const double moments = bytes(storage.m) + bytes(storage.v), master = bytes(storage.master);
  s.divided = moments + (zero > 0 ? master : 0), s.weight = zero > 0 ? s.sent_weight : master;
  s.operands = zero == 0 ? 2 : zero < 3 && eight_bit ? 1 : 0;
  s.end_weight = zero > 0 ? 2 : 4, s.end_divided = zero > 0 ? 12 : 8;
  s.passes = storage.gradients == Storage::f32 ? 0 : 2 * (4 + s.gradient);  // a GEMM's result in FP32 is added to codes
  s.logit_bytes = 0;                                                        // the head makes them in chunks
  s.overlaps_tensor = false;                                                // measured on two H200
  s.rows_to_experts = 3, s.sends_codes_to_experts = true;                   // x again in backward
  s.copies_experts = true;
  return s;
}

void add_encoding(Software& s, const ops::QuantizeSpec& x) {
  if (!x.quantizes()) return;
  if (x.rows.cols > 0) s.product_rate = 0.9, s.encoding_traffic = 0.3;
  else if (!x.scale_known()) s.encoding_traffic = 0.45;
}

Software megatron_core(bool eight_bit) {
  Software s;
  s.name = eight_bit ? "Megatron Core FP8" : "Megatron Core BF16", s.eight_bit = eight_bit;
  s.operands = eight_bit ? 2 : 0;
  s.fragmentation = 0.05, s.fixed_bytes = 4 * gib;
  s.merged_bytes = 32;  // outputs and sums of exponentials in FP32, and gradients of queries
  return s;
}

Software megatron_experts(bool eight_bit) {
  Software s = megatron_core(eight_bit);
  s.once_per_node = true, s.expert_launch_microseconds = 1500;
  // Encodings are kernels of their own; products of weights' gradients run at 0.37 of the others (torchao on an H100: 457 and 1,235).
  if (eight_bit) s.product_rate = 0.73, s.encoding_traffic = 0.3, s.expert_launch_microseconds = 2000;
  return s;
}

}  // namespace octet::plan
