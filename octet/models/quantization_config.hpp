#pragma once

#include <optional>
#include <string>
#include <vector>

#include "octet/json/fields.hpp"
#include "octet/models/weight_form.hpp"

namespace octet::models {

inline constexpr const char* quantization_key = "quantization_config";

/// The value of config.json's quantization_config for weights that are codes. `ignored`: the modules whose weights are values.
/// scale_fmt, which DeepSeek-V3.1 has, says that scales are powers of two, of weights and of activations; FP32 ones without it.
/// Sources: DeepSeek-V3 and Qwen3-8B-FP8 for blocks; compressed-tensors 0.10, as llm-compressor writes FP8_DYNAMIC, for others.
json::Value quantization_config(const WeightForm&, const std::vector<std::string>& ignored);

/// The blocks of scales of the codes in a folder with this config.json; none where weights are values. Throws DataError naming the key of a
/// quantization that Octet does not read.
std::optional<ScaleBlock> quantized_blocks(const json::Fields& config);

}  // namespace octet::models
