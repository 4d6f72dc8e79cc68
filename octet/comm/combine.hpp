#pragma once

#include <span>

#include "octet/comm/collective.hpp"
#include "octet/tensor/cuda/queue.hpp"

namespace octet::comm {

/// to[i] = in[0][i] + in[1][i] + ..., or their largest: in that order, f32 and bf16 in FP32, f64 in FP64, integers exactly modulo 2^32 or
/// 2^64. The host's memory. Inputs have to's dtype and count; `to` may be one of them. Throws ContractError for a dtype that does not add.
void combine(Reduction, std::span<const void* const> in, const Tensor& to);

/// The sum in the memory of a GPU, of f32 or bf16, of at most most_combined inputs. Throws ContractError for others.
void combine(cuda::Queue, std::span<const void* const> in, const Tensor& to);
inline constexpr int most_combined = 16;

}  // namespace octet::comm
