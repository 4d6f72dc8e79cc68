#pragma once

#include <string>
#include <vector>

#include "octet/comm/rendezvous/place.hpp"

namespace octet::comm {

/// The GPUs of this host that this process may use, as CUDA_VISIBLE_DEVICES names them: its entries, or else "0", "1", ... for each
/// /dev/nvidiaN. `devices`: that folder, another one in tests.
std::vector<std::string> visible_gpus(const Variables&, const std::string& devices = "/dev");

/// The GPU of a rank: the one at its local rank, or the only one where the launcher shows each rank just one; "" on a host without GPUs.
/// Throws ConfigError where there are several, and fewer than ranks.
std::string gpu_of(const Place&, const std::vector<std::string>& visible);

/// Sets CUDA_VISIBLE_DEVICES to gpu_of() this process, so that it is CUDA's first. Call it before CUDA is first used.
void take_gpu(const Place&);

}  // namespace octet::comm
