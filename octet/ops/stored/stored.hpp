#pragma once

#include "octet/tensor/storage.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// values[i] = decode(x.codes[i]): the formula of each storage is in octet/ops/stored/. values: f32 of x's shape.
/// Throws ContractError on other shapes or dtypes, and for scales that do not fit.
void decode_stored(Stream&, const Stored& x, const Tensor& values);

/// The nearest codes of f32 values, ties to even, with the scales of these values: per block and per tensor the least power of two with
/// which the largest magnitude is representable; of e4m3_expanded see expanded.math.hpp. Infinity in an 8-bit storage becomes NaN, and
/// neither is part of a maximum. `tiny` acts on scaled storages. Workspace: f32 [1], from scratch, per-tensor scales only.
void encode_stored(Stream&, const Tensor& values, const Stored& x, Tiny tiny = Tiny::flush);

/// Throws ContractError unless the codes have the type of the storage and the scales its shape and type. `who`: the op, for the message.
void check_stored(const char* who, const Stored&);

/// The value of one element in the host's memory: for tests, dumps and small tensors.
float value_at(const Stored&, std::int64_t index);
using octet::Tiny;
using octet::value_at;

}  // namespace octet::ops
