#pragma once

#include <span>
#include <string>
#include <vector>

namespace octet::train {

/// Where a run keeps the gradient of its first step for runs of other recipes: a safetensors file in its folder, of one FP32 tensor that
/// holds all parameters one after another, and its checksum.
std::string first_gradient_file(const std::string& run_folder);

/// Writes that file, atomically. Throws IoError.
void write_first_gradient(const std::string& run_folder, std::span<const float> gradient);

/// Reads it. Throws DataError, which names the file and the remedy, when it is not there or not as it was written.
std::vector<float> read_first_gradient(const std::string& baseline_folder);

/// sum(a b) / sqrt(sum(a a) sum(b b)) of `gradient` and the one that the run in `baseline_folder` keeps. Throws as read_first_gradient(),
/// also when that is of another number of values.
double cosine_with_first_gradient(const std::string& baseline_folder, std::span<const float> gradient);

}  // namespace octet::train
