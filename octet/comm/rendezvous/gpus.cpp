#include "octet/comm/rendezvous/gpus.hpp"

#include <filesystem>

#include "octet/base/text.hpp"

namespace octet::comm {
namespace {

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
  if (const auto list = get(gpus_variable)) return entries(*list);
  std::vector<std::string> out;
  std::error_code none;
  while (std::filesystem::exists(format("{}/nvidia{}", devices, out.size()), none)) out.push_back(std::to_string(out.size()));
  return out;
}

}  // namespace octet::comm
