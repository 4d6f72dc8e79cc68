#pragma once

#include <string>

#include "octet/machine/ranks.hpp"
#include "octet/parallel/long_work.hpp"
#include "octet/train/run/config/run_config.hpp"
#include "octet/train/run/ranks/run_ranks.hpp"

namespace octet::train {

/// The ranks that train each run of a comparison together.
struct CompareRanks {
  comm::Communicator* ranks = nullptr;  // this one among them; null: it is alone
  machine::RankPlacement placement{};
};

/// One rank among those of a comparison: the first one owns the folder and decides for all.
class StudyRanks : public RunRanks {
 public:
  StudyRanks(const CompareRanks&, const std::string& device);

  const machine::RankPlacement& placement() const { return placement_; }
  /// Takes their number into a configuration, whose steps then have the tokens of all.
  void count_in(RunConfig&);

  /// The values of the first rank. All ranks call these.
  std::int64_t of_first(std::int64_t own);
  std::string of_first(const std::string& own);
  /// True where a rank says so.
  bool any(bool own);
  /// parallel::work_of_first().
  void first_works(const std::function<void()>& work) { parallel::work_of_first(stream_, all(), work); }
  /// Whether the first rank finds it so. Other ranks do not look.
  bool first_finds(const std::function<bool()>& look);

 private:
  machine::RankPlacement placement_;
  Stream stream_;
};

}  // namespace octet::train
