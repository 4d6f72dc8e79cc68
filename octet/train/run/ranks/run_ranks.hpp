#pragma once

#include "octet/comm/self/self.hpp"
#include "octet/parallel/ranks_config.hpp"
#include "octet/train/run/ranks/accord.hpp"
#include "octet/train/step/step.hpp"

namespace octet::train {

/// The ranks of a run as one of them sees them, and their common decisions. All ranks call agree() after each step, and then decide
/// alike.
class RunRanks {
 public:
  /// `all` must outlive this; null: one rank alone.
  explicit RunRanks(comm::Communicator* all) : all_(all != nullptr ? *all : self_) {}
  RunRanks(const RunRanks&) = delete;

  comm::Communicator& all() { return all_; }
  bool alone() const { return all_.size() == 1; }
  /// Whether this is the rank that owns the run's folder, reports and saves.
  bool leads() const { return all_.rank() == 0; }

  /// ranks.data becomes the number of ranks along that axis. Throws ConfigError if another number was asked for; warns of a stage that has
  /// no effect.
  void complete(parallel::RanksConfig&) const;
  /// Of a pipeline, by a completed configuration: the one of this rank.
  int stage(const parallel::RanksConfig& c) const { return c.stage_of(all_.rank()); }

  void agree(Stream&, const Accord& own);
  /// By the last agree().
  const Accord& agreed() const { return agreed_; }
  /// Asks this rank alone, beside the requests of its process.
  void ask_to_stop() { asked_ = true; }
  bool asked_to_stop() const;
  /// Whether a rank was asked to stop. One that is alone asks itself at any time; several have agreed.
  bool stopping() const;
  /// Asked in the middle of a step, which only a rank that is alone may leave; else null.
  bool (*stopped_in_step() const)();

  /// A place in the model, and the rank that found it: -1 for one rank, and for none.
  struct Found {
    std::string path;
    int rank = -1;
  };
  /// first_nonfinite() on the first rank that finds a path. All ranks call it.
  Found first_nonfinite(Engine&, std::span<const data::Batch> micro_batches);

 private:
  comm::SelfCommunicator self_;
  comm::Communicator& all_;
  Accord agreed_;
  bool asked_ = false;
};

}  // namespace octet::train
