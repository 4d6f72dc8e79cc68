#pragma once

#include "octet/nn/master_weights.hpp"
#include "octet/nn/parameters.hpp"

namespace octet::nn {

/// Lets the host read and write the master values of all parameters as f32, for as long as it lives: files are read and written this way.
/// Where the values are f32 in the CPU's memory it is they themselves; otherwise a copy, which Parameter::value shows meanwhile and
/// commit() brings back, rounded to nearest.
class HostParameters {
 public:
  /// `masters`: where they are divided, to collect them; null: copies of divided ones are 0, to be written.
  HostParameters(Stream&, Parameters&, MasterWeights* masters = nullptr);
  ~HostParameters();
  HostParameters(const HostParameters&) = delete;
  HostParameters& operator=(const HostParameters&) = delete;

  void commit();

 private:
  void copy_values(std::size_t i);
  void copy_divided(MasterWeights&);
  void show_copies();

  Stream& stream_;
  Parameters& parameters_;
  std::vector<Stored> device_;              // what modules read
  std::vector<std::vector<float>> copies_;  // empty where they are themselves
};

}  // namespace octet::nn
