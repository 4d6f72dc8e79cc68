#include "octet/telemetry/throttling.hpp"

#include <utility>
#include <vector>

#include "octet/base/text.hpp"

namespace octet::telemetry {

std::string throttling_text(std::int64_t bits) {
  std::vector<std::string> words;
  std::int64_t left = bits & ~std::int64_t(gpu_idle | set_clocks);
  for (const auto& [bit, word] : {std::pair(power_cap, "power cap"),
                                  {hardware_slowdown, "slowdown by hardware"},
                                  {sync_boost, "sync boost"},
                                  {heat, "heat"},
                                  {hardware_heat, "heat, found by hardware"},
                                  {power_brake, "power brake"},
                                  {display_clock, "display"}})
    if ((left & bit) != 0) words.emplace_back(word), left &= ~std::int64_t(bit);
  if (left != 0) words.push_back(format("reason {}", left));
  return joined(words);
}

}  // namespace octet::telemetry
