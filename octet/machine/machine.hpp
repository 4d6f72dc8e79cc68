#pragma once

#include <string>

#include "octet/tensor/stream.hpp"

namespace octet::machine {

/// The device of a configuration's `device`: "cpu", "gpu" or "auto" (the GPU if one works). Throws ConfigError for another word,
/// DeviceError with the reason when a GPU is required and none works.
Device device_named(const std::string& word);

/// The target of ops on that device of this machine, for engines and their dry runs.
Target machine_target(Device, bool deterministic = false);

/// "AMD EPYC 9B45, v4" or "NVIDIA H200"; for display.
std::string device_name(Device);
/// Free memory of the device for each of so many ranks on this machine: they share its memory, and each has a GPU of its own.
std::size_t available_bytes(Device, int ranks_here = 1);

/// The checksum of the program's file, by which ranks find that they run different builds; "" where the system does not show it.
std::string program_checksum();

/// The GEMM algorithms that this process chose on the device, as text for a run folder, and their restoring: equal algorithms give equal
/// bits. Empty on the CPU. replay_gemm_algorithms() does nothing on the CPU. It returns false and restores nothing if the text is from
/// another GPU or library, and throws DataError if it is damaged.
std::string gemm_algorithms_text(Device);
bool replay_gemm_algorithms(Device, const std::string& text);

/// The highest rate of matrix products, measured once per process: on a CPU in its faster type, on a GPU in FP8.
struct MatmulLimit {
  DType type = DType::f32;
  double flops_per_second = 0;
};
MatmulLimit matmul_limit(Device);

}  // namespace octet::machine
