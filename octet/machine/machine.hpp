#pragma once

#include <string>

#include "octet/tensor/stream.hpp"

namespace octet {

/// What a configuration's `device` says: "cpu", "gpu", or "auto", which is the GPU where there is one that works. Throws ConfigError for
/// another word, DeviceError with the reason where a GPU is asked for and none can be used.
Device device_named(const std::string& word);

/// What ops on that device of this machine run on, for engines and for dry runs of them.
Target machine_target(Device, bool deterministic = false);

/// "AMD EPYC 9B45, v4" or "NVIDIA H200"; for people.
std::string device_name(Device);
/// Free memory of the device.
std::size_t available_bytes(Device);

/// How this process multiplies on the device, as text that a run folder keeps, and its replay: equal plans give equal bits. Empty on the
/// CPU. replay_gemm_plans() does nothing on the CPU; it is false, and nothing is replayed, when the text is of another GPU or library;
/// throws DataError on a damaged one.
std::string gemm_plans_text(Device);
bool replay_gemm_plans(Device, const std::string& text);

/// The rate of matrix products that the device reaches at its best, measured once per process: on the CPU in the type that it multiplies
/// faster, on a GPU in FP8.
struct MatmulLimit {
  DType type = DType::f32;
  double flops_per_second = 0;
};
MatmulLimit matmul_limit(Device);

}  // namespace octet
