#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "octet/comm/mpi/module.hpp"
#include "octet/comm/mpi/mpi.hpp"

namespace octet::comm {
namespace {

constexpr const char* file = "liboctet_mpi.so";

// The variable OCTET_MPI_MODULE, the program's folder and the one above it (a build), and the library folders of an installation.
std::vector<std::string> places() {
  if (const char* own = std::getenv("OCTET_MPI_MODULE")) return {own};
  std::error_code none;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", none).parent_path();
  std::vector<std::string> out;
  for (const char* folder : {".", "..", "../" OCTET_LIBRARY_FOLDER "/octet", "../lib/octet"})
    out.push_back((program / folder / file).lexically_normal().string());
  return out;
}

}  // namespace

std::string mpi_module_path() {
  for (const std::string& place : places())
    if (access(place.c_str(), R_OK) == 0) return place;
  return "";
}

const MpiTransport& mpi_transport() {
  static const MpiTransport* const transport = [] {
    const std::string path = mpi_module_path();
    if (path.empty())
      throw DeviceError(
          format("{} is not found as {}; install the package libopenmpi-dev and build Octet again, or name the file in "
                 "OCTET_MPI_MODULE",
                 file, joined(places(), " or ")));
    // Global, since Open MPI's own plugins use symbols of the libraries that this brings.
    void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (module == nullptr) throw DeviceError(format("'{}' cannot be opened: {}", path, dlerror()));
    const auto function = reinterpret_cast<MpiModule>(dlsym(module, mpi_module_symbol));
    if (function == nullptr || function()->version != MpiTransport::current_version)
      throw DeviceError(format("'{}' is not of this version of Octet; build and install it again", path));
    return function();
  }();
  return *transport;
}

}  // namespace octet::comm
