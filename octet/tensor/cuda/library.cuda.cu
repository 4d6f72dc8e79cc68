#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>
#include <vector>

#include "octet/base/check.hpp"
#include "octet/tensor/cuda/device.hpp"

namespace octet::cuda {
namespace {

// "a:b" -> a, b.
std::vector<std::string> folders_of(const std::string& list) {
  std::vector<std::string> out;
  for (std::size_t at = 0, end = 0; end != list.npos; at = end + 1) {
    end = list.find(':', at);
    out.push_back(list.substr(at, end - at));
  }
  return out;
}

// "": the loader's own paths.
std::vector<std::string> places() {
  std::vector<std::string> out{""};
  if (const char* own = std::getenv("OCTET_CUDA_LIBRARIES"))
    for (const std::string& folder : folders_of(own)) out.push_back(folder + "/");
  std::vector<std::string> toolkits{"/usr/local/cuda"};
  if (const char* home = std::getenv("CUDA_HOME")) toolkits.insert(toolkits.begin(), home);
  for (const auto& toolkit : toolkits) out.push_back(toolkit + "/lib64/"), out.push_back(toolkit + "/extras/CUPTI/lib64/");
  std::vector<std::string> patterns{"/usr/lib/python3*/site-packages", "/usr/lib/python3/dist-packages",
                                    "/usr/local/lib/python3*/*-packages"};
  if (const char* environment = std::getenv("VIRTUAL_ENV"))
    patterns.insert(patterns.begin(), std::string(environment) + "/lib/python3*/site-packages");
  for (const auto& pattern : patterns) {
    glob_t found{};
    if (glob((pattern + "/nvidia/*/lib").c_str(), 0, nullptr, &found) == 0)
      for (std::size_t i = 0; i < found.gl_pathc; ++i) out.push_back(std::string(found.gl_pathv[i]) + "/");
    globfree(&found);
  }
  return out;
}

struct Opened {
  void* handle = nullptr;
  std::string path;
};
Opened find(const char* file) {
  for (const auto& place : places())
    if (void* handle = dlopen((place + file).c_str(), RTLD_NOW | RTLD_GLOBAL)) return {handle, place + file};
  return {};
}

}  // namespace

void* open_library(const char* file) {
  if (const Opened it = find(file); it.handle != nullptr) return it.handle;
  std::string looked;
  for (const auto& place : places()) looked += (looked.empty() ? "" : ", ") + (place.empty() ? "the loader's folders" : place);
  throw DeviceError(format("{} is not found in {}; install it, or name its folder in OCTET_CUDA_LIBRARIES", file, looked));
}

std::string library_path(const char* file) { return find(file).path; }

void* function_in(void* library, const char* name) {
  void* const found = dlsym(library, name);
  if (found == nullptr) throw DeviceError(format("the CUDA library that was found has no function {}; a newer one is needed", name));
  return found;
}

}  // namespace octet::cuda
