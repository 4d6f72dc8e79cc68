#pragma once

#include "octet/bench/limits.hpp"
#include "octet/bench/row.hpp"
#include "octet/bench/sites.hpp"
#include "octet/nn/head.hpp"
#include "octet/ops/attention/qkv.hpp"
#include "octet/ops/quantize/sink.hpp"

namespace octet::bench {

/// The subject of all groups: one model's shapes on one device, under some recipes.
struct Subject {
  Stream& stream;
  const RandomData& random;
  Limits& limits;
  Effort effort;
  models::ModelShape shape;
  std::int64_t tokens = 0, sequence = 0;  // per micro-batch and per sequence
  Sites sites;
  Storage gradients = Storage::f32;  // of matrices; the head's are always f32
  std::vector<PlannedSites> planned = {};

  ops::QkvShape heads() const {
    return {.heads = shape.heads,
            .kv_heads = shape.kv_heads,
            .head_dim = shape.head_dim,
            .sequence = sequence,
            .value_width = shape.value_columns()};
  }
  /// Tokens per chunk of a head in BF16.
  std::int64_t head_tokens() const { return std::min(tokens, nn::head_chunk(stream, false)); }
};

/// Measures one op bound by memory and adds its row.
void add_memory_row(Subject&, std::vector<Row>&, Row row, const Prepare&);

/// A pass as in training: quantizers record maxima and health.
inline constexpr scaling::Pass recording{.kind = scaling::Pass::Kind::train, .keep = Lifetime::scratch, .count = false};
/// Bytes that filling a sink moves besides the producer's own reads: codes, scales, values that are stored, and read again where a
/// maximum must come first.
double sink_bytes(const Stream&, const ops::Sink&);

/// GEMMs of every layer: forward, gradient of the input, gradient of the weight.
void measure_gemms(Subject&, std::vector<Row>&);
/// Quantizing activations and gradients, rows alone and with the transpose, and a weight.
void measure_quantize(Subject&, std::vector<Row>&);
void measure_attention(Subject&, std::vector<Row>&);
/// Of these rows those with products: attention itself, forward and backward.
void measure_attention_products(Subject&, std::vector<Row>&);
void measure_norms(Subject&, std::vector<Row>&);
/// Element by element or row by row: activation functions, rotation, residual sum, embedding, cross-entropy.
void measure_activations(Subject&, std::vector<Row>&);
/// Ops of experts, of sizes that others publish (small ones on a CPU), not of the model's.
void measure_experts(Subject&, std::vector<Row>&);
void measure_optimizer(Subject&, std::vector<Row>&);

}  // namespace octet::bench
