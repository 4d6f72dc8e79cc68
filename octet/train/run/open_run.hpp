#pragma once

#include "octet/models/companions.hpp"
#include "octet/telemetry/run_facts.hpp"
#include "octet/train/run/record/recorder.hpp"
#include "octet/train/run/checkpoints/resumed.hpp"

namespace octet::train {

/// The folder of a run that this process trains in, and the facts in its run.json. All ranks know its path; the
/// first one holds it.
class OpenRun {
 public:
  /// Makes the folder, or continues the resumed one: facts that belong to the run then stay as its run.json has them. All ranks call it.
  /// Throws IoError.
  OpenRun(const RunConfig&, telemetry::RunFacts, const models::Companions&, Resumed&, Stream&, RunRanks&);

  const std::string& folder() const { return folder_; }
  const HeldFolder& held() const { return held_; }
  /// Those that write_facts() writes.
  telemetry::RunFacts& facts() { return facts_; }
  const telemetry::RunFacts& facts() const { return facts_; }
  /// Throws IoError.
  void write_facts() const;
  /// Between two steps: a folder that was moved or removed, and one that is there again, are incidents in the record.
  void watch(std::int64_t step, Recorder&);
  /// Throws IoError where it was moved or removed: the end of such a run must not look like that of one whose files are there.
  void require_in_place(std::int64_t step) const;

 private:
  void begin(const RunConfig&);
  void go_on(Resumed&);

  std::string folder_;
  HeldFolder held_;
  telemetry::RunFacts facts_;
  bool lost_ = false;
};

}  // namespace octet::train
