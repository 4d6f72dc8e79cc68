#pragma once

#include "octet/comm/combine.hpp"
#include "octet/tensor/cpu/isa.hpp"

namespace octet::cpu {
namespace v3 {
void combine(comm::Reduction, const void* const* in, std::int64_t inputs, const Tensor& to);
}  // namespace v3
namespace v4 {
void combine(comm::Reduction, const void* const* in, std::int64_t inputs, const Tensor& to);
}  // namespace v4
}  // namespace octet::cpu

namespace octet::cuda {
void combine_sums(Queue, const void* const* in, int inputs, const Tensor& to);
}  // namespace octet::cuda
