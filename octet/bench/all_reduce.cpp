#include "octet/bench/all_reduce.hpp"

#include <algorithm>
#include <optional>

#include "octet/base/clock.hpp"
#include "octet/base/log.hpp"
#include "octet/machine/limits.hpp"
#include "octet/machine/machine.hpp"
#include "octet/machine/ranks.hpp"
#include "octet/ops/normal/normal.hpp"
#include "octet/parallel/eight_bit_sum.hpp"
#include "octet/parallel/host_values.hpp"
#include "octet/parallel/shared_scale_sum.hpp"

namespace octet::bench {
namespace {

using comm::Communicator, comm::Reduction;

DType type_of(Wire way) { return way == Wire::f32 ? DType::f32 : DType::bf16; }

// One sum of a tensor, which may be repeated.
class Sum {
 public:
  Sum(Stream& stream, Communicator& comm, Wire way, std::int64_t count) : stream_(stream), comm_(comm), way_(way), codes_(comm) {
    x_ = stream.empty({count}, type_of(way), Lifetime::run);
    ops::fill_normal(stream, std::uint64_t(comm.rank()), 1e-3, x_);  // sums of sums stay finite
    if (way == Wire::e4m3_shared) shared_.emplace(stream, comm.size(), std::vector{count}, parallel::SumRoom::adapted_at_zero);
  }
  void operator()() {
    if (way_ == Wire::e4m3) codes_.all_reduce(stream_, x_);
    else if (shared_) shared_->all_reduce(stream_, comm_, std::span(&x_, 1));
    else comm_.all_reduce(stream_, x_, Reduction::sum);
  }

 private:
  Stream& stream_;
  Communicator& comm_;
  Wire way_;
  Tensor x_;
  parallel::EightBitSum codes_;
  std::optional<parallel::SharedScaleSum> shared_;
};

// Seconds of one sum: `launches` sums between two barriers.
double sample(Stream& stream, Communicator& comm, Sum& sum, std::int64_t launches) {
  comm.barrier(stream);
  const double start = monotonic_seconds();
  for (std::int64_t i = 0; i < launches; ++i) sum();
  comm.barrier(stream);
  return (monotonic_seconds() - start) / double(launches);
}

std::vector<AllReduceRow> measured_rows(Communicator& comm, Device device, const AllReduceOptions& options) {
  std::vector<AllReduceRow> rows;
  for (const std::int64_t bytes : options.bytes)
    for (const Wire way : {Wire::f32, Wire::bf16, Wire::e4m3, Wire::e4m3_shared}) {
      // Below it, FP8-LM's sum is that of BF16.
      if (way == Wire::e4m3_shared && bytes / 2 < parallel::SharedScaleSum::fewest_values) continue;
      rows.push_back(measure_sum(comm, device, way, bytes, options.effort));
    }
  return rows;
}

}  // namespace

AllReduceRow measure_sum(Communicator& comm, Device device, Wire way, std::int64_t bytes, const Effort& effort) {
  Stream stream(device);
  Sum sum(stream, comm, way, bytes / std::int64_t(size_of(type_of(way))));
  sum();
  const std::int64_t before = comm.traffic().bytes;
  sum();
  AllReduceRow row{.way = way, .bytes = bytes, .bytes_sent = comm.traffic().bytes - before, .seconds = {}, .ranks = comm.size()};
  const double once = std::max(sample(stream, comm, sum, 1), 1e-9);
  const std::int64_t launches =
      parallel::of_first(stream, comm, std::clamp<std::int64_t>(std::int64_t(effort.sample_seconds / once), 1, 1000));
  std::vector<double> samples;
  for (int i = 0; i < effort.repeats; ++i) samples.push_back(sample(stream, comm, sum, launches));
  row.seconds = timing_of(std::move(samples));
  return row;
}

machine::RankWish rank_wish(const AllReduceOptions& options) {
  for (const std::int64_t bytes : options.bytes)
    if (bytes < 4 || bytes % 4 != 0 || bytes > (std::int64_t(1) << 36))
      throw ConfigError(format("--bytes {}: a tensor has a multiple of 4 bytes, at most 64 GiB", bytes));
  machine::choose_own_gpu();
  return {.ranks = options.ranks,
          .otherwise = 2,
          .device = options.device,
          .limit_seconds = options.limit_seconds,
          .peer_memory = options.peer_memory};
}

AllReduceResult measure_all_reduce(const AllReduceOptions& options) {
  auto out = machine::result_on_ranks(rank_wish(options), [&](Communicator& comm, const machine::RankPlacement& placement) {
    return AllReduceResult{.backend = placement.backend,
                           .machine = machine::device_name(placement.device),
                           .ranks = comm.size(),
                           .reports = comm.rank() == 0,
                           .rows = measured_rows(comm, placement.device, options),
                           .quality = {}};
  });
  if (out.reports && options.limit && out.backend != "nccl")
    out.copy_bytes_per_second = machine::machine_limits(Device::cpu).bytes_per_second;
  if (out.reports) out.quality = measure_sum_quality(options.quality_ranks, options.limit_seconds);
  return out;
}

}  // namespace octet::bench
