#pragma once

#include <limits>
#include <optional>
#include <string>

#include "octet/comm/communicator.hpp"
#include "octet/telemetry/run_facts.hpp"
#include "octet/train/checkpoint/store.hpp"
#include "octet/train/run/engine/layer_change.hpp"
#include "octet/train/run/folder/run_folder.hpp"

namespace octet::train {

/// The sequences of a step as a rank trains on them.
struct StepSplit {
  std::int64_t batch = 0, accumulate = 0;
};
/// The split by which `ranks` ranks have the given sequences in a step: the largest micro-batch that divides a rank's share and is at most
/// `most_batch`. None if the ranks cannot have equal shares.
std::optional<StepSplit> split_of(std::int64_t sequences, std::int64_t ranks, std::int64_t most_batch);
/// Sequences in a step of all ranks.
std::int64_t sequences_per_step(const RunConfig&);

/// The configuration of the run when it saved this checkpoint, in the folder `checkpoint`. Throws DataError where it cannot be read.
RunConfig config_of(const Manifest&, const std::string& checkpoint);

/// The precision of the engine whose state this checkpoint is.
PrecisionNow precision_of(const Manifest&, const std::string& checkpoint);

/// Throws ConfigError naming the keys that differ from the checkpoint's and are fixed (config::OnResume), and DataError when the text is
/// another one. With another ranks.data, train.batch and train.accumulate may differ, too, if a step has as many sequences as before; else
/// the ConfigError names values that give as many.
void require_same_run(const RunConfig&, const std::string& text, const Manifest&, const std::string& checkpoint);

/// The newest intact checkpoint; a warning names every newer one with its fault, and that sentence
/// is added to `damaged` where there is one. None when there is no checkpoint at all. Throws DataError when there are some and all are
/// damaged. With `before`: of steps before that one.
std::optional<Manifest> newest_good(const CheckpointStore&, std::vector<std::string>* damaged = nullptr,
                                    std::int64_t before = std::numeric_limits<std::int64_t>::max());

/// The same by ranks together, which all call it: each reads a share of the files, and all find the same checkpoint, or throw the same
/// DataError. A fault that another rank than the first one finds names that rank.
std::optional<Manifest> newest_good(Stream&, comm::Communicator&, const CheckpointStore&, std::vector<std::string>* damaged = nullptr,
                                    std::int64_t before = std::numeric_limits<std::int64_t>::max());

/// How this machine computes otherwise than the one that the run ran on so far, as a sentence; "" where the resumed run has the bits of an
/// uninterrupted one.
std::string difference_of(const telemetry::MachineFacts& before, const telemetry::MachineFacts& now);

/// The folder in which a run of this configuration began last: output/name, output/name-2, ... Throws ConfigError when there is none.
std::string last_run_folder(const RunConfig&);

}  // namespace octet::train
