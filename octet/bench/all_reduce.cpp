#include "octet/bench/all_reduce.hpp"

#include <algorithm>
#include <optional>

#include "octet/base/clock.hpp"
#include "octet/base/log.hpp"
#include "octet/comm/mpi/mpi.hpp"
#include "octet/comm/rendezvous/place.hpp"
#include "octet/comm/rendezvous/share_threads.hpp"
#include "octet/comm/threads/threads.hpp"
#include "octet/machine/machine.hpp"
#include "octet/ops/normal/normal.hpp"
#include "octet/parallel/eight_bit_sum.hpp"
#include "octet/parallel/shared_scale_sum.hpp"

namespace octet::bench {
namespace {

using comm::Communicator, comm::Reduction;

DType type_of(SumWay way) { return way == SumWay::f32 ? DType::f32 : DType::bf16; }

// One sum of a tensor, which may be repeated.
class Sum {
 public:
  Sum(Stream& stream, Communicator& comm, SumWay way, std::int64_t count) : stream_(stream), comm_(comm), way_(way) {
    x_ = stream.empty({count}, type_of(way), Lifetime::run);
    ops::fill_normal(stream, std::uint64_t(comm.rank()), 1e-3, x_);  // sums of sums stay finite
    if (way == SumWay::e4m3_shared) shared_.emplace(stream, comm.size(), std::vector{count}, parallel::SumRoom::adapted_at_zero);
  }
  void operator()() {
    if (way_ == SumWay::e4m3) parallel::eight_bit_all_reduce(stream_, comm_, x_);
    else if (shared_) shared_->all_reduce(stream_, comm_, std::span(&x_, 1));
    else comm_.all_reduce(stream_, x_, Reduction::sum);
  }

 private:
  Stream& stream_;
  Communicator& comm_;
  SumWay way_;
  Tensor x_;
  std::optional<parallel::SharedScaleSum> shared_;
};

// The same number on all ranks: that of rank 0.
std::int64_t agreed(Stream& stream, Communicator& comm, std::int64_t n) {
  const Scope scope(stream);
  const Tensor t = stream.empty({1}, DType::i64);
  *t.as<std::int64_t>() = n;
  comm.broadcast(stream, t, 0);
  return *t.as<std::int64_t>();
}

// Seconds of one sum: `launches` sums between two barriers.
double sample(Stream& stream, Communicator& comm, Sum& sum, std::int64_t launches) {
  comm.barrier(stream);
  const double start = monotonic_seconds();
  for (std::int64_t i = 0; i < launches; ++i) sum();
  comm.barrier(stream);
  return (monotonic_seconds() - start) / double(launches);
}

AllReduceRow measure(Communicator& comm, SumWay way, std::int64_t bytes, const Effort& effort) {
  Stream stream(Device::cpu);
  Sum sum(stream, comm, way, bytes / std::int64_t(size_of(type_of(way))));
  sum();
  const std::int64_t before = comm.traffic().bytes;
  sum();
  AllReduceRow row{.way = way, .bytes = bytes, .bytes_sent = comm.traffic().bytes - before, .seconds = {}, .ranks = comm.size()};
  const double once = std::max(sample(stream, comm, sum, 1), 1e-9);
  const std::int64_t launches = agreed(stream, comm, std::clamp<std::int64_t>(std::int64_t(effort.sample_seconds / once), 1, 1000));
  std::vector<double> samples;
  for (int i = 0; i < effort.repeats; ++i) samples.push_back(sample(stream, comm, sum, launches));
  row.seconds = timing_of(std::move(samples));
  return row;
}

void measure_rows(Communicator& comm, const AllReducePlan& plan, AllReduceResult& out) {
  for (const std::int64_t bytes : plan.bytes)
    for (const SumWay way : {SumWay::f32, SumWay::bf16, SumWay::e4m3, SumWay::e4m3_shared}) {
      // Below it, FP8-LM's sum is that of BF16.
      if (way == SumWay::e4m3_shared && bytes / 2 < parallel::SharedScaleSum::fewest_values) continue;
      const AllReduceRow row = measure(comm, way, bytes, plan.effort);
      if (comm.rank() == 0) out.rows.push_back(row);
    }
}

void check_plan(const AllReducePlan& plan) {
  for (const std::int64_t bytes : plan.bytes)
    if (bytes < 4 || bytes % 4 != 0 || bytes > (std::int64_t(1) << 36))
      throw ConfigError(format("--bytes {}: a tensor has a multiple of 4 bytes, at most 64 GiB", bytes));
}

std::unique_ptr<Communicator> connect(const comm::Place& place, const AllReducePlan& plan) {
  if (place.launcher == comm::Launcher::torchrun)
    throw ConfigError(
        "octet bench allreduce measures ranks on CPUs, which exchange tensors over MPI: start it with mpirun, not with torchrun");
  if (plan.ranks > 0 && plan.ranks != place.size)
    throw ConfigError(format("--ranks {}: {} has started {} processes, which are the ranks; leave it out", plan.ranks,
                             comm::name(place.launcher), place.size));
  comm::share_threads(place);
  auto comm = comm::connect_mpi(plan.limit_seconds);
  if (comm->size() != place.size)
    throw ConfigError(
        format("{} has started {} ranks, but MPI finds {}: use the mpirun of the MPI that Octet was built with, or srun --mpi=pmix",
               comm::name(place.launcher), place.size, comm->size()));
  return comm;
}

// Threads: as many as --ranks says, or octet launch, which are one number where both say so.
int thread_ranks(const AllReducePlan& plan) {
  const int asked = comm::thread_ranks_from_environment();
  if (asked > 0 && plan.ranks > 0 && asked != plan.ranks)
    throw ConfigError(format("--ranks {}: octet launch wants {} ranks; leave it out", plan.ranks, asked));
  return plan.ranks > 0 ? plan.ranks : asked > 0 ? asked : 2;
}

}  // namespace

std::string_view name(SumWay w) {
  constexpr std::string_view names[] = {"f32", "bf16", "e4m3", "e4m3_shared", "e4m3_prescaled", "e4m3_postscaled"};
  return names[std::size_t(w)];
}

AllReduceResult measure_all_reduce(const AllReducePlan& plan) {
  check_plan(plan);
  AllReduceResult out{
      .backend = "threads", .machine = machine::device_name(Device::cpu), .ranks = thread_ranks(plan), .rows = {}, .quality = {}};
  if (const comm::Place place = comm::place_from_environment(); place.launcher != comm::Launcher::none) {
    const auto comm = connect(place, plan);
    out.backend = "mpi", out.ranks = comm->size(), out.reports = comm->rank() == 0;
    measure_rows(*comm, plan, out);
  } else {
    comm::run_on_threads({.ranks = out.ranks, .limit_seconds = plan.limit_seconds},
                         [&](Communicator& comm) { measure_rows(comm, plan, out); });
  }
  if (out.reports) out.quality = measure_sum_quality(plan.quality_ranks, plan.limit_seconds);
  return out;
}

}  // namespace octet::bench
