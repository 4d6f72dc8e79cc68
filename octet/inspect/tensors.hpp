#pragma once

#include <string>
#include <vector>

#include "octet/io/safetensors_file.hpp"

namespace octet::inspect {

/// Every tensor of the files: type, shape, bytes, the smallest and largest value, root mean square, the share of zeros, and how many
/// values are not finite; of an 8-bit type also how many of its codes occur and the share of its largest value. Variables
/// of a checkpoint that have scales are shown by the name of their storage, with the values that codes and scales decode to; other FP8
/// codes without scales. Reads every byte. The last line sums up.
std::string tensors_text(const std::vector<const io::SafetensorsFile*>& files);

}  // namespace octet::inspect
