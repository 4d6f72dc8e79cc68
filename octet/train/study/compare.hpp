#pragma once

#include "octet/telemetry/comparison.hpp"
#include "octet/train/run/record/console.hpp"
#include "octet/train/study/study.hpp"
#include "octet/train/study/study_ranks.hpp"

namespace octet::train {

/// Where a comparison left its files.
struct CompareOutcome {
  std::string folder;
  telemetry::Comparison comparison;
};

/// Trains each arm from the same initial weights on the same data, the baseline and its twins first, each in a folder of its own below
/// run.output/run.name, and writes compare.json and report.html there. When train.max_seconds is set it bounds all runs together: steps of
/// each arm are timed first, and all get the same number of steps. Throws ConfigError as StudyConfig::runs() does,
/// DivergedError when the baseline diverged, and Error with ExitCode::interrupted after a signal.
///
/// Several ranks all call it: each run is trained by all of them, and the first one has the outcome; the others have a folder alone.
CompareOutcome compare(StudyConfig, Console::Kind = Console::Kind::automatic, const CompareRanks& = {});

/// Resumes the comparison in `folder`: finished runs are read, a stopped or killed one resumes from its checkpoint, the
/// others are trained. On the CPU, losses, gaps and cosines have the bits of a comparison that never stopped. Throws what
/// Study::attend() and hold() do, DataError when the text is another one or a run's files are damaged, and as compare().
CompareOutcome resume_compare(const std::string& folder, Console::Kind = Console::Kind::automatic, const CompareRanks& = {});

}  // namespace octet::train
