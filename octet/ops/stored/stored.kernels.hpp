#pragma once

#include "octet/ops/stored/stored.hpp"
#include "octet/tensor/backend.hpp"

namespace octet::ops {
struct EncodeStored {
  const Tensor& values;
  const Stored& out;
  Tiny tiny;
  Tensor maximum;  // f32 [1], 0: per-tensor scales only
};
}  // namespace octet::ops

OCTET_KERNEL(decode_stored, const Stored&, const Tensor& values)
OCTET_KERNEL(encode_stored, const ops::EncodeStored&)
