#pragma once

#include "octet/tensor/state.hpp"
#include "octet/tensor/stream.hpp"

namespace octet::nn {

/// Values of a variable of any storage from and to the host's floats, in row-major order. Setting computes the scales from the values and
/// rounds to nearest even. Nothing on the null device.
void set_values(Stream&, const Stored&, const float* host, Tiny tiny = Tiny::flush);
void get_values(Stream&, const Stored&, float* host);
/// A slice from all values of its variable: a scale per tensor follows from all of them.
void set_values(Stream&, const StoredSlice&, const float* whole, Tiny tiny = Tiny::flush);

/// Of a storage with one scale per tensor: the maximum beside its descale, from the codes. Nothing on the null device.
void set_tensor_maximum(Stream&, const Stored&);

/// All of them as one row of floats.
std::vector<float> flat_values(Stream&, const std::vector<Stored>&);
/// The same of tensors of f32 or bf16.
std::vector<float> flat_values(Stream&, const std::vector<Tensor>&);

}  // namespace octet::nn
