#pragma once

#include "octet/bench/all_reduce.hpp"

namespace octet::bench {

/// A rank's host and device: "cpu", or its GPU as CUDA_VISIBLE_DEVICES names it.
struct RankSpot {
  std::string host, device;
};

/// Two ranks that send to each other at once, while the others wait.
struct PairRow {
  int first = 0, second = 1;
  Timing seconds;    // of one exchange
  std::string link;  // as nvidia-smi topo -m names it: NV18, PIX, SYS, ...; "" where it is not known

  /// Bytes per second in each direction.
  double rate(std::int64_t bytes) const { return double(bytes) / seconds.median; }
};

struct Topology {
  std::string backend, machine;
  std::int64_t bytes = 0;  // that each of two ranks sends in an exchange
  bool reports = true;     // false on processes other than that of rank 0
  std::vector<RankSpot> ranks;
  std::vector<PairRow> pairs;  // (0, 1), (0, 2), ..., (1, 2), ...
};

/// Every pair of ranks in turn, with tensors of the largest of plan.bytes. Links are those of rank 0's host. Throws as
/// measure_all_reduce().
Topology measure_topology(const AllReduceOptions&);

/// The links in the output of `nvidia-smi topo -m`: (row, column) such as ("GPU0", "NIC1") -> "PIX". Empty if it has no such table.
using Links = std::vector<std::pair<std::pair<std::string, std::string>, std::string>>;
Links links_of(const std::string& text);

std::string table_text(const Topology&);
json::Value to_json(const Topology&);

}  // namespace octet::bench
