#include "octet/ops/expert_map/expert_map.kernels.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {

void expert_map(const Tensor& chosen, const ops::ExpertMap& map, const Tensor&) {
  const std::int64_t choices = chosen.count(), experts = map.groups.size(), tile = map.groups.tile;
  const auto* const expert = chosen.as<std::int32_t>();
  auto *const begin = map.groups.begin.as<std::int32_t>(), *const count = map.groups.count.as<std::int32_t>();
  auto *const row = map.row.as<std::int32_t>(), *const source = map.source.as<std::int32_t>();
  for (std::int64_t e = 0; e < experts; ++e) count[e] = 0;
  for (std::int64_t i = 0; i < choices; ++i) row[i] = expert[i] < 0 ? -1 : count[expert[i]]++;
  begin[0] = 0;
  for (std::int64_t e = 0; e < experts; ++e) begin[e + 1] = std::int32_t(begin[e] + (count[e] + tile - 1) / tile * tile);
  for (std::int64_t r = 0; r < map.rows(); ++r) source[r] = -1;
  for (std::int64_t i = 0; i < choices; ++i) {
    if (expert[i] < 0) continue;
    row[i] += begin[expert[i]];
    source[row[i]] = std::int32_t(i);
  }
}

}  // namespace octet::cpu::OCTET_ISA
