#pragma once

#include <string>
#include <vector>

#include "octet/comm/rendezvous/launched_rank.hpp"

namespace octet::comm {

/// The variable by which CUDA restricts a process to some GPUs.
inline constexpr const char* gpus_variable = "CUDA_VISIBLE_DEVICES";

/// The GPUs of this host that this process may use, as CUDA_VISIBLE_DEVICES names them: its entries, or else "0", "1", ... for each
/// /dev/nvidiaN. `devices`: that folder, another one in tests.
std::vector<std::string> visible_gpus(const Variables&, const std::string& devices = "/dev");

}  // namespace octet::comm
