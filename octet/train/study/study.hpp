#pragma once

#include "octet/train/study/arm.hpp"
#include "octet/train/run/folder/held_folder.hpp"

namespace octet::train {

/// Defaults of a comparison where they are not a run's: a learning rate of 1e-3 that falls to 0, and 32,768 held-out tokens. At a higher
/// rate chance takes runs that differ by rounding alone too far apart (docs/compare.md has the measurement).
RunConfig comparable_defaults();

/// Arms and seeds of a comparison, and its tolerance.
struct CompareConfig {
  std::string baseline = "bf16";     // arm that the others are measured against: a recipe, or the name of one of `arms`
  std::vector<std::string> recipes;  // arms that differ by recipe alone
  std::vector<std::string> arms;     // others, as parse_arm() reads them
  std::int64_t seeds = 1;            // runs of each arm
  std::int64_t twins = 1;            // of the baseline, for each seed
  double tolerance = 0.005;          // of the gap in loss, as a fraction
  std::string text;                  // fingerprint of the dataset: all runs must train on the same

  void fields(config::FieldVisitor&);
};

/// One run of a study.
struct StudyRun {
  std::string arm;
  std::int64_t seed = 0;
  std::int64_t twin = 0;  // number of this twin of the baseline; 0: no twin
  std::string name;       // of its folder in the study's
};

/// The configuration of a study: the runs' common one, and the comparison's.
struct StudyConfig {
  RunConfig run;
  CompareConfig compare;

  void fields(config::FieldVisitor&);
  /// The baseline first. Throws ConfigError when an arm or a recipe is bad or repeated, and when the baseline is neither.
  std::vector<Arm> arms() const;
  /// In the order in which they are trained: seed by seed from run.seed on, the baseline first, then its twins. Throws as arms() does, and
  /// ConfigError when two runs would share a folder.
  std::vector<StudyRun> runs() const;
  /// The configuration of a run: run, with the arm's keys, and seed and name of its own. It keeps one checkpoint.
  RunConfig config_of(const StudyRun&) const;
};

/// The folder of a comparison: its configuration in study.toml, written before its first run, and a folder for each run. Holds
/// the folder's lock.
class Study {
 public:
  static constexpr const char* file_name = "study.toml";

  /// A new one in run.output/run.name, or name-2, ... where that is taken. Throws IoError.
  static Study begin(const StudyConfig&);
  /// The one in `folder`, to read. Throws ConfigError when there is none or its file is not as begin() wrote it.
  static Study attend(std::string folder);
  /// From now on this process owns the folder. Throws IoError when another one has it.
  void hold();

  const std::string& folder() const { return folder_; }
  const StudyConfig& config() const { return config_; }
  std::string folder_of(const StudyRun& run) const { return folder_ + "/" + run.name; }
  /// The configuration of one run.
  RunConfig config_of(const StudyRun&) const;
  /// Of the run that `run` is compared with.
  StudyRun baseline_of(const StudyRun&) const;
  /// Not so of its twins.
  bool is_baseline(const StudyRun& run) const { return run.arm == config_.compare.baseline && run.twin == 0; }
  /// Whether a folder for it was made.
  bool has_begun(const StudyRun&) const;
  /// Whether there is nothing left to train: it is finished or has diverged. Throws DataError when its run.json is damaged.
  bool is_over(const StudyRun&) const;
  /// Removes files that a finished run no longer needs: its checkpoints and, with the last run of a seed, the baseline's first gradient.
  /// Warns where that fails.
  void clear(const StudyRun&) const;

 private:
  Study(std::string folder, StudyConfig config) : folder_(std::move(folder)), config_(std::move(config)) {}

  std::string folder_;
  StudyConfig config_;
  HeldFolder held_;
};

}  // namespace octet::train
