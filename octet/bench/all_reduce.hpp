#pragma once

#include "octet/bench/timing.hpp"
#include "octet/comm/communicator.hpp"
#include "octet/json/value.hpp"
#include "octet/machine/ranks.hpp"
#include "octet/parallel/wire.hpp"

namespace octet::bench {

/// Options of `octet bench allreduce`.
struct AllReduceOptions {
  std::vector<std::int64_t> bytes;  // of the tensors, in the type that is summed
  std::string device = "auto";      // auto | cpu | gpu, whose memory is summed
  int ranks = 0;                    // threads of this process; 0: 2, or the ranks that a launcher started
  std::vector<int> quality_ranks;   // numbers of ranks whose sums are compared with FP64
  Effort effort;
  double limit_seconds = 60;  // how long a rank waits for others
  bool peer_memory = true;    // comm.peer_memory
  bool limit = false;         // whether to measure the limit of the machine, too
};

using parallel::Wire;  // how ranks sum a tensor

/// The time of one size.
struct AllReduceRow {
  Wire way;
  std::int64_t bytes = 0;       // of the tensor
  std::int64_t bytes_sent = 0;  // by a rank, from its counters
  Timing seconds;
  int ranks = 1;

  double algorithm_rate() const { return double(bytes) / seconds.median; }
  /// The rate at which a rank's link would be used by an algorithm that sends no byte twice: algorithm_rate() * 2 (ranks - 1) / ranks.
  double bus_rate() const { return algorithm_rate() * 2 * (ranks - 1) / ranks; }
};

/// How near the sums of all elements are to those in FP64.
struct SumQuality {
  Wire way;
  bool coherent = false;  // all ranks have the same values
  int ranks = 1;
  double decibel = 0;                  // 20 log10(|sum| / |error|)
  double underflow = 0, overflow = 0;  // shares: of sent values that became 0, of sums that have the largest code
  double mu = 1;                       // of e4m3_shared, after its last step
};

struct AllReduceResult {
  std::string backend, machine;  // threads, mpi or nccl
  int ranks = 1;
  bool reports = true;               // false on processes other than that of rank 0
  double copy_bytes_per_second = 0;  // of the memory by which ranks of a CPU exchange, read and written; 0: not known
  std::vector<AllReduceRow> rows;
  std::vector<SumQuality> quality;
};

/// On the ranks of machine::on_ranks(). Throws ConfigError on impossible options, and as it does.
AllReduceResult measure_all_reduce(const AllReduceOptions&);

/// The time of one size among these ranks, which all call it.
AllReduceRow measure_sum(comm::Communicator&, Device, Wire, std::int64_t bytes, const Effort&);

/// The ranks that the options ask for: two threads if nothing says how many. Throws ConfigError on sizes that no tensor has.
machine::RankWish rank_wish(const AllReduceOptions&);

/// Sums of log-normal magnitudes (sigma 2) with random signs, 131,072 values per rank, by every way.
std::vector<SumQuality> measure_sum_quality(const std::vector<int>& ranks, double limit_seconds);

std::string table_text(const AllReduceResult&);
json::Value to_json(const AllReduceResult&);
/// A picture of bus bandwidth by size, a line per way, as an SVG file. There are several ranks.
std::string svg_text(const AllReduceResult&);

}  // namespace octet::bench
