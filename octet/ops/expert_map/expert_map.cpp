#include "octet/ops/expert_map/expert_map.hpp"

#include <algorithm>

#include "octet/ops/expert_map/expert_map.kernels.hpp"
#include "octet/ops/expert_map/known_choices.hpp"

namespace octet::ops {
namespace {

void check_chosen(const Stream& stream, const Tensor& chosen, std::int64_t experts, std::int64_t choices) {
  if (stream.device() != Device::cpu) return;  // a GPU's kernel leaves such choices out
  const std::int32_t* const expert = chosen.as<std::int32_t>();
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < chosen.count(); ++i) {
    check(expert[i] >= -1 && expert[i] < experts, "expert_map: choice {} of token {} is expert {}, outside [0, {})", i % chosen.shape[1],
          i / chosen.shape[1], expert[i], experts);
    found += expert[i] >= 0;
  }
  check(found <= choices, "expert_map: {} choices are experts, and {} were announced", found, choices);
}

}  // namespace

std::int64_t rows_of_experts(std::int64_t tokens, std::int64_t choices, std::int64_t experts, std::int64_t tile) {
  check(tokens >= 0 && choices > 0 && experts > 0 && tile > 0,
        "rows_of_experts: wants tokens, choices, experts and a tile, got {}, {}, {} and {}", tokens, choices, experts, tile);
  return rows_of_choices(tokens * choices, experts, tile);
}

std::int64_t rows_of_choices(std::int64_t choices, std::int64_t experts, std::int64_t tile) {
  return (choices + std::min(experts, choices) * (tile - 1)) / tile * tile;
}

ExpertMap empty_expert_map(Stream& stream, std::int64_t tokens, std::int64_t choices, std::int64_t experts, std::int64_t tile,
                           Region region) {
  const auto ints = [&](Shape shape) { return stream.empty(shape, DType::i32, region, Category::activations); };
  ExpertMap map;
  map.row = ints({tokens, choices});
  map.source = ints({rows_of_experts(tokens, choices, experts, tile)});
  map.groups = {.begin = ints({experts + 1}), .count = ints({experts}), .tile = tile};
  return map;
}

void expert_map(Stream& stream, const Tensor& chosen, const ExpertMap& map) { expert_map(stream, chosen, map, chosen.count()); }

void expert_map(Stream& stream, const Tensor& chosen, const ExpertMap& map, std::int64_t known) {
  check(chosen.shape.rank == 2 && chosen.dtype == DType::i32, "expert_map: choices must be i32 [T, K], got {} {}", chosen.dtype,
        chosen.shape);
  const std::int64_t experts = map.groups.size();
  check_expert_map("expert_map", map);
  check(map.row.shape == chosen.shape, "expert_map: the map must have rows for {}, got {}", chosen.shape, map.row.shape);
  const std::int64_t least = rows_of_choices(known, experts, map.groups.tile);
  check(map.rows() >= least, "expert_map: {} choices of {} experts want at least {} rows, got {}", known, experts, least, map.rows());
  check_chosen(stream, chosen, experts, known);
  stream.count({.ops = 1, .bytes = 2.0 * double(chosen.bytes()) + double(map.source.bytes())});
  const Scope scope(stream);
  Tensor strips;
  if (stream.target().device == Device::cuda)
    strips = stream.empty({ceil_div(chosen.count(), expert_map_strip), experts}, DType::i32, Lifetime::scratch, Category::workspace);
  OCTET_LAUNCH(stream, expert_map, chosen, map, strips);
}

void check_row_groups(const char* op, const RowGroups& groups) {
  constexpr std::int64_t most_experts = 1024;  // a GPU's block has a thread for each
  const std::int64_t experts = groups.count.shape[0];
  check(groups.count.shape == Shape{experts} && groups.count.dtype == DType::i32 && groups.begin.shape == Shape{experts + 1} &&
            groups.begin.dtype == DType::i32,
        "{}: groups have i32 begin [E + 1] and count [E], got {} {} and {} {}", op, groups.begin.dtype, groups.begin.shape,
        groups.count.dtype, groups.count.shape);
  check(experts > 0 && experts <= most_experts && groups.tile > 0, "{}: wants 1 to {} experts and a tile, got {} and {}", op, most_experts,
        experts, groups.tile);
}

void check_expert_map(const char* op, const ExpertMap& map) {
  check_row_groups(op, map.groups);
  check(map.row.shape.rank == 2 && map.row.dtype == DType::i32 && map.source.shape.rank == 1 && map.source.dtype == DType::i32,
        "{}: a map has i32 row [T, K] and source [R], got {} {} and {} {}", op, map.row.dtype, map.row.shape, map.source.dtype,
        map.source.shape);
}

}  // namespace octet::ops
