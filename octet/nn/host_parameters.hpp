#pragma once

#include "octet/nn/block_weights.hpp"
#include "octet/nn/parameters.hpp"

namespace octet::nn {

/// Lets the host read and write the values of all parameters as f32, for as long as it lives: files are read and written this way. Where
/// the values are f32 in the CPU's memory it is they themselves; otherwise a copy, which Parameter::value shows meanwhile and commit()
/// brings back, rounded to nearest.
class HostParameters {
 public:
  /// `weights`: where blocks are not all in memory, to open them.
  HostParameters(Stream&, Parameters&, BlockWeights* weights = nullptr);
  ~HostParameters();
  HostParameters(const HostParameters&) = delete;
  HostParameters& operator=(const HostParameters&) = delete;

  void commit();

 private:
  Stream& stream_;
  Parameters& parameters_;
  std::vector<Stored> device_;              // the values' own storage
  std::vector<std::vector<float>> copies_;  // empty where they are themselves
};

}  // namespace octet::nn
