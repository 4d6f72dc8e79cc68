#pragma once

#include "octet/ops/quantize/sink.hpp"

namespace octet::ops {

/// A sink of values in existing memory that are not quantized.
inline Sink plain_sink(const Tensor& values) {
  return {.shape = values.shape, .dtype = values.dtype, .plain = values, .spec = {.format = values.dtype}};
}

}  // namespace octet::ops
