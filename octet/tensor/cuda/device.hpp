#pragma once

#include <cstddef>
#include <string>

namespace octet::cuda {

/// Whether this program was compiled for GPUs.
bool built();
/// Why no GPU can be used here, in a sentence for people; empty when one can. Never throws.
const std::string& why_unavailable();
inline bool available() { return why_unavailable().empty(); }

/// The GPU that this process computes on: the first one that CUDA shows (CUDA_VISIBLE_DEVICES chooses).
struct Facts {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
  int driver = 0, runtime = 0;  // versions as CUDA counts: 13000 is 13.0
};
/// Throws DeviceError with why_unavailable() where there is none.
const Facts& facts();
/// Of its memory, what no process has taken. Throws DeviceError when CUDA does not tell.
std::size_t free_bytes();

/// Opens a shared library of CUDA's by its file name ("libcublasLt.so.13"): where the loader looks, then in OCTET_CUDA_LIBRARIES, the
/// toolkit, and the folders that Python's packages of the CUDA libraries use. Throws DeviceError that lists where it looked.
void* open_library(const char* file);
/// Where open_library() found it, or "" when it is nowhere; for `octet doctor`.
std::string library_path(const char* file);
/// The address of a function in it. Throws DeviceError when there is none of that name.
void* function_in(void* library, const char* name);

}  // namespace octet::cuda
