#pragma once

#include <functional>

#include "octet/train/checkpoint/saver.hpp"
#include "octet/train/run/recorder.hpp"
#include "octet/train/run/run_config.hpp"

namespace octet::train {

/// The checkpoints of one run: schedule, saving in the background, failures, restoring.
class RunCheckpoints {
 public:
  /// The contents of a checkpoint.
  struct Contents {
    std::function<void(StateVisitor&)> state;
    std::string config, text;  // as in Manifest
    bool written = true;       // false: another rank writes them, and this one keeps to its schedule
  };
  /// `folder`: of the run. Stream and recorder outlive this.
  RunCheckpoints(const std::string& folder, const CheckpointConfig&, Stream&, Recorder&, Contents);

  /// Reads the state of a checkpoint that was found good. Returns a sentence that tells which variables it stores otherwise than this run,
  /// so that their values were converted; "" where there are none. Throws DataError, IoError.
  std::string restore(const Manifest&);
  /// Time since the last checkpoint counts from now on.
  void start_clock();

  /// Whether a checkpoint of this step is due. Reports an earlier one that failed.
  bool due(std::int64_t step);
  /// Whether the last one is still being written.
  bool busy() const { return saver_.busy(); }
  /// Copies the state of `step` and begins to write it. A failure is an incident in the record, and training continues.
  void save(std::int64_t step);
  /// save(), unless the step has one already, and waits until nothing is being written.
  void save_last(std::int64_t step);
  /// Waits until nothing is being written, and reports a failure.
  void finish();

 private:
  bool take_snapshot(Snapshot&, std::int64_t step);
  void report();
  void not_saved(std::int64_t step, const std::string& why);

  std::string folder_;
  CheckpointConfig config_;
  Stream& stream_;
  Recorder& recorder_;
  Contents contents_;
  double last_save_ = 0;  // by the machine's clock
  bool due_ = false;
  std::int64_t saved_step_ = -1;  // of the newest checkpoint, good or being written
  CheckpointSaver saver_;         // last: it uses the recorder
};

}  // namespace octet::train
