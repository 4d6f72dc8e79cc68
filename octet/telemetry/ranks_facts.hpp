#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace octet::telemetry {

/// The matrix products of one step on one rank, and its exchanges with others.
struct StepWork {
  double gemm_flops = 0, fp8_flops = 0;  // fp8: of products with an 8-bit operand
  std::int64_t collectives = 0, sent_bytes = 0;
  friend bool operator==(const StepWork&, const StepWork&) = default;
};

/// The ranks of a run, and the work of each in a step as planned and as counted.
struct RanksFacts {
  struct Sent {
    std::string collective{};
    std::int64_t calls = 0, bytes = 0;
  };
  std::int64_t wanted = 0;             // ranks.data; 0: as many as were started
  std::int64_t started = 1, here = 1;  // in all, and on the machine of rank 0
  std::string backend{};               // "threads", "mpi", "nccl"; "" of one rank
  std::string gradients{};             // their format on the wire; "" of one rank
  std::vector<Sent> sent{};            // planned, by one rank in a step
  // Tensors whose gradients travel with one shared scale, in the order of every array of SharedScalesEvent.
  std::vector<std::string> shared_scales{};
  StepWork planned;
  std::optional<StepWork> ran{};  // by rank 0; none before the first step that was compared with the plan
};

}  // namespace octet::telemetry
