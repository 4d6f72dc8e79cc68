#pragma once

#include "octet/comm/dry_run/dry_run.hpp"
#include "octet/train/run/config/run_config.hpp"
#include "octet/train/step/engine.hpp"

namespace octet::train {

/// Memory and work of one step, known before anything is allocated.
struct DryRun {
  MemoryPeak memory;                   // of the arena: a real run's, to the byte
  Work step;                           // one optimizer step, which measures nothing besides maxima
  std::int64_t parameters = 0;         // without padding
  std::vector<std::size_t> saved;      // bytes that each block saves for backward, of one micro-batch; empty for a model without the count
  std::vector<scaling::PlanRow> plan;  // of layers, optimizer state, and GEMMs that the target only emulates
  std::vector<scaling::Slot> quantizers;
  std::vector<std::string> shared_scales{};             // SharedScales::tensors()
  std::array<comm::Traffic, comm::collectives> sent{};  // by one rank in a step, by collective: in all Work::sent_bytes of it
  std::vector<std::string> smaller_states{};            // settings that the run does not have, and with which its states need less memory
};

/// One of the ranks of a dry run: the first one of a stage.
struct DryRunRank {
  int stage = 0;
  comm::Workspace workspace = nullptr;  // of the backend by which ranks exchange tensors
};

/// On the null device: a step of one micro-batch, a step of two if there are more, a measuring step, and an evaluation. With stages of a
/// pipeline, that of one of them. Where micro-batches are in flight together, steps have all of them.
DryRun dry_run(const EngineConfig&, Target, std::int64_t batch, std::int64_t accumulate, const DryRunRank& rank = {});

/// That rank among all of a run.
comm::DryRunCommunicator communicator_of(const EngineConfig&, const DryRunRank&);

/// Throws DeviceError, with the largest entries of the memory table and remedies, when the run needs more than `available` bytes of the
/// device's memory, or more of the host's beside a GPU than there is.
void require_memory(const DryRun&, std::size_t available, const LoopConfig&);

/// Throws DeviceError, with remedies, when the device would only emulate 8-bit GEMMs of the run and recipe.emulation is false.
void require_native(const DryRun&, const scaling::PrecisionConfig&);

/// Throws ConfigError, with remedies, when 8-bit formats are asked for and no linear layer runs in one, because of the layers' shapes.
void require_eight_bits(const DryRun&, const scaling::PrecisionConfig&);

}  // namespace octet::train
