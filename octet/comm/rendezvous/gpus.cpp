#include "octet/comm/rendezvous/gpus.hpp"

#include <cstdlib>
#include <filesystem>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"

namespace octet::comm {
namespace {

constexpr const char* variable = "CUDA_VISIBLE_DEVICES";

std::vector<std::string> entries(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find(','));
    if (entry.empty() || entry == "-1" || entry == "NoDevFiles") break;  // as CUDA reads it: those before an invalid one
    out.emplace_back(entry);
    list.remove_prefix(std::min(list.size(), entry.size() + 1));
  }
  return out;
}

}  // namespace

std::vector<std::string> visible_gpus(const Variables& get, const std::string& devices) {
  if (const auto list = get(variable)) return entries(*list);
  std::vector<std::string> out;
  std::error_code none;
  while (std::filesystem::exists(format("{}/nvidia{}", devices, out.size()), none)) out.push_back(std::to_string(out.size()));
  return out;
}

std::string gpu_of(const Place& p, const std::vector<std::string>& visible) {
  if (visible.size() <= 1) return visible.empty() ? "" : visible.front();
  if (std::size_t(p.local_rank) < visible.size()) return visible[std::size_t(p.local_rank)];
  throw ConfigError(
      format("local rank {} has no GPU: this host shows {}; start fewer ranks per host, or with CUDA_VISIBLE_DEVICES= none "
             "of them uses a GPU",
             p.local_rank, visible.size()));
}

void take_gpu(const Place& p) {
  if (const std::string gpu = gpu_of(p, visible_gpus(environment_variable)); !gpu.empty()) ::setenv(variable, gpu.c_str(), 1);
}

}  // namespace octet::comm
