#pragma once

#include <atomic>
#include <functional>

#include "octet/train/checkpoint/saver.hpp"
#include "octet/train/checkpoint/store.hpp"
#include "octet/train/run/engine/state_of_run.hpp"
#include "octet/train/run/folder/held_folder.hpp"

namespace octet::train {

/// The checkpoints of one run: schedule, saving in the background, failures, restoring.
///
/// Of several ranks the first one writes. Where variables are divided, each rank writes its slices into a file of its own, and the first
/// one commits them together; All ranks call save(), commit(), save_last() and finish() alike. If a rank cannot write, as on
/// a full disk, none of the files is committed, and the incident names rank, host and file.
class RunCheckpoints {
 public:
  /// `folder`: of the run, as all ranks know it, and held(); `text`: as in Manifest.
  RunCheckpoints(const std::string& folder, const HeldFolder& held, const RunConfig&, const std::string& text, StateOfRun&);

  /// Reads the state of a checkpoint that was found good. Returns a sentence that tells which variables it stores otherwise than this run,
  /// so that their values were converted; "" where there are none. Throws DataError, IoError.
  std::string restore(const Manifest&);
  /// The newest intact checkpoint of a step before `step`, or -1 and the reason. Waits until nothing is being written. All ranks
  /// call it and get the same step.
  struct Found {
    std::int64_t step = -1;
    std::string why{};
  };
  Found newest_before(std::int64_t step);
  std::string path(std::int64_t step) const { return store_.path(step); }
  Manifest manifest(std::int64_t step) const { return store_.manifest(step); }
  /// Restores a part of the state from that one, and removes newer ones. All ranks call it. Throws DataError, IoError.
  void return_to(std::int64_t step, const std::function<void(StateVisitor&)>& part);
  /// Returns when variables of the state may change again: before an update, and before the engine ends.
  void wait_copied() { copying_.wait(true); }
  /// Time since the last checkpoint counts from now on.
  void start_clock();

  /// Whether a checkpoint of this step is due. Reports an earlier one that failed.
  bool due(std::int64_t step);
  /// Whether this rank is still writing.
  bool busy() const { return saver_.busy(); }
  /// When no rank is busy(): begins to commit files that all have written. Whether there were some.
  bool commit();
  /// Begins to copy the state of `step`, beside the next step until its wait_copied(), and to write it. A failure is an incident in the
  /// record, and training continues.
  void save(std::int64_t step);
  /// save() once earlier ones are written, unless the step has one already; waits until nothing is being written.
  void save_last(std::int64_t step);
  /// Waits until no rank writes any more, however long one does, and reports a failure.
  void finish();

 private:
  Stream& stream() { return run_.engine.engine().stream; }
  comm::Communicator& ranks() const { return run_.engine.placement().ranks; }
  bool leads() const { return ranks().rank() == 0; }
  Capture::What own_part();
  bool all_ranks(bool own);
  std::string read_state(const Manifest&, const std::function<void(StateVisitor&)>& state);
  void wait_saved();
  void save_whole(Snapshot);
  void save_part(Snapshot, std::string error);
  std::vector<std::string> told_by_ranks(const std::string& own, std::int64_t step);
  std::string prepare(std::int64_t step);
  void write_manifest(std::int64_t step, std::vector<Manifest::File>);
  std::string begin_snapshot(Snapshot&, std::int64_t step);
  void complete(Snapshot&);
  void report();
  void not_saved(std::int64_t step, const std::string& why);

  std::string folder_;
  const HeldFolder& held_;
  CheckpointConfig config_;
  std::string written_config_, text_;  // as in Manifest
  StateOfRun& run_;
  double last_save_ = 0;  // by the machine's clock
  bool due_ = false;
  std::int64_t saved_step_ = -1;    // of the newest checkpoint, good or being written
  std::int64_t written_step_ = -1;  // of files of ranks that are not committed
  Manifest::File own_file_;         // of these
  CheckpointStore store_;
  std::atomic<bool> copying_ = false;
  CheckpointSaver saver_;  // last: it uses the recorder
};

}  // namespace octet::train
