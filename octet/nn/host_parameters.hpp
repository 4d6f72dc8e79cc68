#pragma once

#include "octet/nn/master_weights.hpp"
#include "octet/nn/parameters.hpp"
#include "octet/nn/partition.hpp"

namespace octet::nn {

/// Lets the host read and write the master values of all parameters as f32, for as long as it lives: files are read and written this way.
/// Where the values are f32 in the CPU's memory it is they themselves; otherwise a copy, which Parameter::value shows meanwhile and
/// commit() brings back, rounded to nearest.
class HostParameters {
 public:
  /// `masters`: where they are divided, to collect them.
  /// `partition`: whose member has these parameters; where it divides them, list() shows whole ones, which all members collect, or, without
  /// `collect`, which are 0, to be written.
  HostParameters(Stream&, Parameters&, MasterWeights& masters, Partition& = whole_partition(), bool collect = true);
  ~HostParameters();
  HostParameters(const HostParameters&) = delete;
  HostParameters& operator=(const HostParameters&) = delete;

  /// In the order of Parameters::list().
  const std::vector<Parameter*>& list() const { return list_; }
  void commit();

 private:
  void copy_values(std::size_t i);
  void copy_divided(MasterWeights&);
  void show_whole(bool collect);
  void show_copies();

  Stream& stream_;
  Parameters& parameters_;
  std::vector<Stored> device_;              // what modules read
  std::vector<std::vector<float>> copies_;  // empty where they are themselves
  Partition& partition_;
  std::vector<Parameter*> list_;
  std::vector<std::unique_ptr<Parameter>> whole_;  // of several members
};

}  // namespace octet::nn
