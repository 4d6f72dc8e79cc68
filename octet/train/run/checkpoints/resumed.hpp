#pragma once

#include "octet/train/checkpoint/manifest.hpp"
#include "octet/train/run/config/corpus.hpp"
#include "octet/train/run/engine/layer_change.hpp"
#include "octet/train/run/folder/held_folder.hpp"
#include "octet/train/run/ranks/run_ranks.hpp"

namespace octet::train {

/// The run to resume, as it is found before anything of it is changed.
struct Resumed {
  std::string folder{};                                     // "": the run is a new one
  HeldFolder held{};                                        // the same
  std::optional<Manifest> checkpoint{};                     // the newest good one
  PrecisionNow precision{};                                 // there; of a new run that of its first step
  std::vector<std::pair<std::string, std::string>> told{};  // kind and text of incidents before the record was open
};

/// The one in that folder. All ranks call it. Throws ConfigError where the configuration cannot continue it, DataError, and IoError when
/// another process trains in it.
Resumed resumed_run(const std::string& folder, const RunConfig&, const Corpus&, RunRanks&);

}  // namespace octet::train
