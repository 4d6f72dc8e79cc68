#pragma once

#include <cstdint>
#include <string>

#include "octet/optim/level.hpp"
#include "octet/parallel/ranks_config.hpp"

namespace octet::train {

/// The parts of a block that backward computes again.
enum class Recomputed : std::uint8_t { none, norms, block };  // norms: norms and the activation function
std::string to_text(Recomputed);

/// How ranks divide the training of a model. Rank order: tensor, context, data, pipeline. Experts use the ranks of data: their axis is no
/// factor of the number of ranks.
struct Layout {
  std::int64_t tensor = 1, pipeline = 1, context = 1, data = 1;
  std::int64_t experts = 1;  // of these, neighbours that divide the routed experts
  parallel::Schedule schedule = parallel::Schedule::one_f_one_b;
  std::int64_t chunks = 1;  // of a pipeline stage
  std::int64_t zero = 0;
  std::int64_t shard = 0;        // ranks of a group that divides the state; 0: all sharers()
  std::int64_t micro_batch = 1;  // sequences
  Recomputed recomputed = Recomputed::none;
  optim::Level level = optim::Level::O0;
  bool eight_bit = false;

  std::int64_t gpus() const { return tensor * pipeline * context * data; }
  /// Ranks, or groups of them, that train on sequences of their own.
  std::int64_t sequence_groups() const { return data; }
  /// Ranks that have the same part of the model, and of these the ones among which ZeRO divides its state, and those with the same part of
  /// it.
  std::int64_t sharers() const { return sequence_groups() * context; }
  std::int64_t shards() const { return shard > 0 ? shard : sharers(); }
  std::int64_t same_shard() const { return sharers() / shards(); }
  bool defers() const { return schedule == parallel::Schedule::zero_bubble || schedule == parallel::Schedule::dualpipe_v; }
  bool operator==(const Layout&) const = default;
};

/// A number of a layout that is a key of [ranks], too. It is all that reads, writes and copies these keys, so a new one is one row.
struct LayoutNumber {
  std::string_view name;  // of --layout, and of an axis in words
  std::int64_t Layout::*in_layout;
  std::int64_t parallel::RanksConfig::*in_ranks;
  bool axis = false;  // a factor of gpus()
  std::int64_t least = 1, most = 1 << 20;
};
inline constexpr LayoutNumber layout_numbers[] = {
    {"tensor", &Layout::tensor, &parallel::RanksConfig::tensor, true},
    {"pipeline", &Layout::pipeline, &parallel::RanksConfig::pipeline, true},
    {"context", &Layout::context, &parallel::RanksConfig::context, true},
    {"data", &Layout::data, &parallel::RanksConfig::data, true},
    {"experts", &Layout::experts, &parallel::RanksConfig::expert},
    {"chunks", &Layout::chunks, &parallel::RanksConfig::chunks},
    {"zero", &Layout::zero, &parallel::RanksConfig::zero, false, 0, 3},
    {"shard", &Layout::shard, &parallel::RanksConfig::shard},
};

/// The layout of [ranks], and [ranks] of a layout; other keys stay.
Layout layout_of(const parallel::RanksConfig&);
void set_ranks(parallel::RanksConfig&, const Layout&);

/// "tensor 4 x pipeline 2 x data 8, ZeRO-1, micro-batch 2", without axes of 1.
std::string to_text(const Layout&);

}  // namespace octet::train
