#include "octet/train/run/ranks/run_ranks.hpp"

#include <algorithm>
#include <numeric>

#include "octet/base/log.hpp"
#include "octet/parallel/host_values.hpp"
#include "octet/train/run/ranks/stop.hpp"
#include "octet/train/step/nonfinite.hpp"

namespace octet::train {

namespace {

[[noreturn]] void refuse_number(const parallel::RanksConfig& c, std::int64_t size, const std::string& started) {
  const std::int64_t others = c.beside_data();
  const std::vector<comm::Axis> axes = c.axes_beside_data();
  const bool one = axes.size() == 1;
  const std::string other = one ? format(", or set ranks.{} = {}", axes[0].name, std::gcd(size, others)) : "";
  throw ConfigError(format("{}: {}, which is not a multiple of {}; start {} ranks{}", c.axes_text(), started, one ? "it" : to_text(others),
                           round_up(size, others), other));
}

}  // namespace

void RunRanks::complete(parallel::RanksConfig& config) const {
  const std::string started = format("{} {} started", all_.size(), alone() ? "rank was" : "ranks were");
  const std::int64_t others = config.beside_data();
  if (all_.size() % others != 0) refuse_number(config, all_.size(), started);
  const std::int64_t data = all_.size() / others;
  if (config.data != 0 && config.data != data)
    throw ConfigError(others == 1 ? format("ranks.data = {}: {}; start as many, or leave the key out", config.data, started)
                                  : format("ranks.data = {} and {}: {}; start {}, or leave out ranks.data", config.data, config.axes_text(),
                                           started, config.all()));
  if (!alone()) config.data = data;
  if (config.of_part() == 1 && config.zero > 0)
    log::warn("ranks.zero = {} has no effect: {}; start more ranks, as with octet launch", config.zero,
              others == 1 ? "one rank keeps the whole state" : "one rank keeps the whole state of its part of the model");
}

void RunRanks::agree(Stream& stream, const Accord& own) { agreed_ = train::agree(stream, all_, own); }

bool RunRanks::asked_to_stop() const { return asked_ || stop_requested(); }

bool RunRanks::stopping() const { return alone() ? asked_to_stop() : agreed_.stop; }

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
