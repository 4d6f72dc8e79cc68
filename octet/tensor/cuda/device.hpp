#pragma once

#include <cstddef>
#include <string>

namespace octet::cuda {

/// Whether this program was compiled for GPUs.
bool built();
/// The reason why no GPU works here, as one sentence; empty if one works. Never throws.
const std::string& why_unavailable();
inline bool available() { return why_unavailable().empty(); }

/// The GPU of this process: the first one that CUDA lists (CUDA_VISIBLE_DEVICES selects).
struct Facts {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
  int driver = 0, runtime = 0;  // versions as CUDA counts: 13000 is 13.0
};
/// Throws DeviceError with why_unavailable() where there is none.
const Facts& facts();
/// Its free memory. Throws DeviceError when CUDA fails.
std::size_t free_bytes();

/// Opens a shared library of CUDA's by its file name ("libcublasLt.so.13"): in the loader's paths, then in OCTET_CUDA_LIBRARIES, the
/// toolkit, and the folders that Python's packages of the CUDA libraries use. Throws DeviceError that lists the searched folders.
void* open_library(const char* file);
/// The path found by open_library(), or "" if none; for `octet doctor`.
std::string library_path(const char* file);
/// The address of a function in it. Throws DeviceError when there is none of that name.
void* function_in(void* library, const char* name);

}  // namespace octet::cuda
