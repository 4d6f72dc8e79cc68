#include "octet/ops/visits/visits.kernels.hpp"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/queue.hpp"

// A thread for each token: rows are short.

namespace octet::cuda {
namespace {

constexpr int threads = 128;

__device__ __forceinline__ std::int64_t own_token() { return std::int64_t(blockIdx.x) * threads + threadIdx.x; }

__global__ void __launch_bounds__(threads)
    visited_members_kernel(std::int64_t tokens, ops::VisitSizes s, const std::int32_t* chosen, std::int32_t* visited) {
  if (const std::int64_t t = own_token(); t < tokens) ops::visit_row(s, chosen + t * s.choices, visited + t * s.members);
}

__global__ void __launch_bounds__(threads)
    pack_choices_kernel(std::int64_t tokens, ops::VisitSizes s, const std::int32_t* chosen, const std::int32_t* visited,
                        const std::int32_t* row, const float* from, std::int32_t* experts, float* weights) {
  if (const std::int64_t t = own_token(); t < tokens)
    ops::pack_row(s, chosen + t * s.choices, visited + t * s.members, row + t * s.members, from + t * s.choices, experts, weights);
}

__global__ void __launch_bounds__(threads)
    unpack_weights_kernel(std::int64_t tokens, ops::VisitSizes s, const std::int32_t* chosen, const std::int32_t* visited,
                          const std::int32_t* row, const float* weights, float* to) {
  const std::int64_t t = own_token();
  if (t >= tokens) return;
  ops::each_packed(s, chosen + t * s.choices, visited + t * s.members, row + t * s.members,
                   [&](std::int64_t k, std::int64_t r, std::int64_t j) { to[t * s.choices + k] = weights[r * s.packed + j]; });
}

unsigned blocks_of(std::int64_t tokens) { return unsigned(ceil_div(tokens, std::int64_t(threads))); }

}  // namespace

void visited_members(Queue queue, const Tensor& chosen, const Tensor& visited, const ops::VisitSizes& s) {
  const std::int64_t tokens = chosen.shape[0];
  if (tokens == 0) return;
  visited_members_kernel<<<blocks_of(tokens), threads, 0, queue>>>(tokens, s, chosen.as<std::int32_t>(), visited.as<std::int32_t>());
  launched("visited_members");
}

void pack_choices(Queue queue, const ops::PackedChoices& p, const Tensor& from, const ops::VisitSizes& s) {
  const std::int64_t tokens = p.chosen.shape[0];
  if (tokens == 0) return;
  pack_choices_kernel<<<blocks_of(tokens), threads, 0, queue>>>(tokens, s, p.chosen.as<std::int32_t>(), p.visited.as<std::int32_t>(),
                                                                p.row.as<std::int32_t>(), from.f32(), p.experts.as<std::int32_t>(),
                                                                p.weights.f32());
  launched("pack_choices");
}

void unpack_weights(Queue queue, const ops::PackedChoices& p, const Tensor& to, const ops::VisitSizes& s) {
  const std::int64_t tokens = p.chosen.shape[0];
  if (tokens == 0) return;
  unpack_weights_kernel<<<blocks_of(tokens), threads, 0, queue>>>(tokens, s, p.chosen.as<std::int32_t>(), p.visited.as<std::int32_t>(),
                                                                  p.row.as<std::int32_t>(), p.weights.f32(), to.f32());
  launched("unpack_weights");
}

}  // namespace octet::cuda
