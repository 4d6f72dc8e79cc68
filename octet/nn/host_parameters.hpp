#pragma once

#include "octet/nn/parameters.hpp"

namespace octet::nn {

/// Lets the host read and write the values of all parameters, for as long as it lives: files are read and written this way. On the CPU
/// that is the parameters themselves; from a GPU it is a copy, which Parameter::value shows meanwhile and commit() brings back.
class HostParameters {
 public:
  HostParameters(Stream&, Parameters&);
  ~HostParameters();
  HostParameters(const HostParameters&) = delete;
  HostParameters& operator=(const HostParameters&) = delete;

  /// Makes the device's values those of the host.
  void commit();

 private:
  void point_into(std::byte* base);

  Stream& stream_;
  Parameters& parameters_;
  std::unique_ptr<std::byte[]> copy_;
};

}  // namespace octet::nn
