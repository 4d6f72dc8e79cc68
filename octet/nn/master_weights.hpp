#pragma once

#include "octet/nn/bucket.hpp"

namespace octet::nn {

/// Master weights of which only a part is kept here.
class MasterWeights {
 public:
  virtual ~MasterWeights() = default;
  /// All values of a bucket, with padding, to the host: count floats. In every part of the division, and of all buckets in one order.
  virtual void get_values(Stream&, const Bucket&, float* host) = 0;
};

/// Of parameters that are only written: 0.
class UnreadMasters final : public MasterWeights {
 public:
  void get_values(Stream&, const Bucket&, float*) override {}
};

}  // namespace octet::nn
