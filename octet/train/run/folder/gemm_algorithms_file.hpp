#pragma once

#include <string>

#include "octet/tensor/stream.hpp"
#include "octet/train/run/folder/held_folder.hpp"

namespace octet::train {

/// Writes how this process multiplies on the device to `gemm-plans.txt` of a run's folder; on the CPU, nothing. Throws IoError.
void store_gemm_algorithms(const HeldFolder&, Device);

/// Uses that file's algorithms from now on, if it exists. Warns when it is of another GPU or library; throws DataError when it is
/// damaged.
void replay_gemm_algorithms(const std::string& run_folder, Device);

}  // namespace octet::train
