#pragma once

#include "octet/bench/subject.hpp"
#include "octet/train/run/dry_run/dry_run.hpp"

namespace octet::bench {

/// The least time that one optimizer step can take on this machine with the kernels' limits of this run:
///   gemm       8-bit GEMM operations / limit of 8-bit matrices + the others / limit of bf16 matrices; on the CPU, all of them at the
///              rate that oneDNN reaches by itself on the layers' shapes
///   attention  operations of attention / the best rate that attention alone reached in this run
///   memory     bytes that all other ops read and write, each tensor once / copy bandwidth
struct Floor {
  double gemm_seconds = 0, attention_seconds = 0, memory_seconds = 0;

  double seconds() const { return gemm_seconds + attention_seconds + memory_seconds; }
};

/// `work` is one step's; `attention`: rows of attention forward and backward.
Floor floor_of(Subject&, const Work& work, const std::vector<Row>& attention);

}  // namespace octet::bench
