#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "octet/numerics/scale.hpp"
#include "octet/tensor/tensor.hpp"

// E4M3 codes of rows of a matrix on the host, with the scales that quantizers of training give the same values. Codes of Hugging Face
// folders, whose scales are multiplied after decoding: `descale` here, `weight_scale` and `weight_scale_inv` there.

namespace octet::models {

/// ceil(n / block), or 1 where the block is all of them.
inline std::int64_t blocks_of(std::int64_t n, int block) { return block == 0 ? 1 : (n + block - 1) / block; }

struct WeightCodes {
  std::vector<std::byte> codes;
  std::vector<float> descales;  // row-major, of blocks_of(rows) x blocks_of(columns)
};

/// Codes of whole rows, which begin at a block's first row. A positive `amax` is that of every block: the rows are a part of a block.
/// Source: ops::quantize(), of which these are the bits.
WeightCodes encode_weights(std::span<const float> values, std::int64_t columns, ScaleBlock, ScaleRule, float amax = 0);

/// max |x|.
float largest(std::span<const float> values);

/// The values of codes, code * descale. Of each block, the values of the largest code are moved by up to 4 units in the last place where
/// encode_weights() would find another descale otherwise: so codes and descales survive decoding and encoding, bit by bit, by
/// the rule of these descales. `descales`: of the blocks of these rows.
void decode_weights(std::span<const std::byte> codes, std::span<const float> descales, std::int64_t columns, ScaleBlock,
                    std::span<float> values);

bool is_power_of_two(float positive);

}  // namespace octet::models
