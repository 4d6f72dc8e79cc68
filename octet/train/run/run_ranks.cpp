#include "octet/train/run/run_ranks.hpp"

#include <algorithm>
#include <numeric>

#include "octet/base/log.hpp"
#include "octet/parallel/host_values.hpp"
#include "octet/train/run/stop.hpp"
#include "octet/train/step/nonfinite.hpp"

namespace octet::train {

void RunRanks::complete(parallel::RanksConfig& config) const {
  const std::string started = format("{} {} started", all_.size(), alone() ? "rank was" : "ranks were");
  if (all_.size() % config.tensor != 0)
    throw ConfigError(format("ranks.tensor = {}: {}, which is not a multiple of it; start {} ranks, or set ranks.tensor = {}",
                             config.tensor, started, round_up(all_.size(), config.tensor),
                             std::gcd(std::int64_t(all_.size()), config.tensor)));
  const std::int64_t data = all_.size() / config.tensor;
  if (config.data != 0 && config.data != data)
    throw ConfigError(config.tensor == 1 ? format("ranks.data = {}: {}; start as many, or leave the key out", config.data, started)
                                         : format("ranks.data = {} and ranks.tensor = {}: {}; start {}, or leave out ranks.data",
                                                  config.data, config.tensor, started, config.all()));
  if (!alone()) config.data = data;
  if (data == 1 && config.zero > 0)
    log::warn("ranks.zero = {} has no effect: one rank keeps the whole state; start several, as with octet launch", config.zero);
}

void RunRanks::agree(Stream& stream, const Accord& own) { agreed_ = train::agree(stream, all_, own); }

bool RunRanks::stopping() const { return alone() ? stop_requested() : agreed_.stop; }

bool (*RunRanks::stopped_in_step() const)() { return alone() ? stop_requested : nullptr; }

RunRanks::Found RunRanks::first_nonfinite(Engine& engine, std::span<const data::Batch> micro_batches) {
  const std::string own = train::first_nonfinite(engine, micro_batches);
  if (alone()) return {.path = own};
  const std::vector<std::string> paths = parallel::gathered(engine.stream, all_, own);
  const auto found = std::ranges::find_if(paths, [](const std::string& path) { return !path.empty(); });
  if (found == paths.end()) return {};
  return {.path = *found, .rank = int(found - paths.begin())};
}

}  // namespace octet::train
