#pragma once

#include <string>

#include "octet/comm/self/self.hpp"
#include "octet/parallel/long_work.hpp"
#include "octet/train/run/config/run_config.hpp"

namespace octet::train {

/// The ranks that train each run of a comparison together.
struct CompareRanks {
  comm::Communicator* ranks = nullptr;  // this one among them; null: it is alone
  int here = 1;                         // of these on this machine
  std::string backend = {};             // by which they exchange tensors
};

/// One rank among those of a comparison: the first one owns the folder and decides for all.
class StudyRanks {
 public:
  StudyRanks(const CompareRanks&, const std::string& device);

  bool alone() const { return ranks_.size() == 1; }
  bool leads() const { return ranks_.rank() == 0; }
  comm::Communicator& communicator() { return ranks_; }
  int here() const { return here_; }
  const std::string& backend() const { return backend_; }
  /// Takes their number into a configuration, whose steps then have the tokens of all.
  void count_in(RunConfig&) const;

  /// The values of the first rank. All ranks call it.
  std::int64_t of_first(std::int64_t own);
  std::string of_first(const std::string& own);
  /// True where a rank says so.
  bool any(bool own);
  /// parallel::long_work(), for which all ranks come.
  void long_work(const std::function<void()>& work) { parallel::long_work(stream_, ranks_, work); }

 private:
  comm::SelfCommunicator self_;
  comm::Communicator& ranks_;
  int here_;
  std::string backend_;
  Stream stream_;
};

}  // namespace octet::train
