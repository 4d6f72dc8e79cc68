#include <algorithm>
#include <type_traits>
#include <vector>

#include "octet/ops/adamw/adamw.kernels.hpp"
#include "octet/ops/adamw/adamw.math.hpp"
#include "octet/ops/adamw/stored_update.cuh"
#include "octet/tensor/cuda/check.cuh"
#include "octet/tensor/cuda/lanes.cuh"

namespace octet::cuda {
namespace {

constexpr int threads = 256, packs_a_thread = 2;

struct Parameter {
  const void* grad;
  void *value, *m, *v;
  std::int64_t count;
  std::uint64_t key;
  std::int64_t first;
  CutPositions places;
  float weight_decay;

  __device__ void set(ops::AdamWDraws& draws, const ops::AdamWStep& s) const {
    draws.key = key, draws.update = s.updates, draws.first = first;
  }
  __device__ void set(ops::AdamWPlacedDraws& draws, const ops::AdamWStep& s) const {
    set(static_cast<ops::AdamWDraws&>(draws), s), draws.places = places;
  }
};
constexpr int most_parameters = 52;
using Batch = ParameterBatch<Parameter, most_parameters>;

template <class P, class G, class M, int N, class Draws>
__global__ void __launch_bounds__(threads, std::is_same_v<Draws, ops::AdamWDraws> ? 4 : 2)  // places take registers
    adamw_kernel(const __grid_constant__ Batch batch, ops::AdamWConstants constants, const ops::AdamWStep* step) {
  const ops::AdamWStep s = *step;
  if (s.skip != 0) return;
  const int i = batch.of_block(blockIdx.x);
  const Parameter& p = batch.parameter[i];
  constants.weight_decay = p.weight_decay;
  Draws draws;
  p.set(draws, s);
  std::int64_t at = (std::int64_t(blockIdx.x - batch.first_block[i]) * packs_a_thread * threads + threadIdx.x) * N;
#pragma unroll 1
  for (int k = 0; k < packs_a_thread && at < p.count; ++k, at += threads * N)
    ops::adamw_update(RowLanes<32, N>{}, at, constants, s, static_cast<const G*>(p.grad), static_cast<P*>(p.value), static_cast<M*>(p.m),
                      static_cast<M*>(p.v), draws);
}

using Parameters = std::vector<const ops::AdamWParameter*>;

template <class P, class G, class M, int N, class Draws>
void launch(Queue queue, const ops::AdamW& a, const Parameters& parameters) {
  for (std::size_t begin = 0; begin < parameters.size(); begin += most_parameters) {
    Batch batch{};
    batch.n = int(std::min<std::size_t>(most_parameters, parameters.size() - begin));
    for (int i = 0; i < batch.n; ++i) {
      const ops::AdamWParameter& p = *parameters[begin + std::size_t(i)];
      const std::int64_t count = p.value.count(), blocks = ceil_div(count, std::int64_t(threads) * packs_a_thread * N);
      batch.parameter[i] = {p.grad.codes.data, p.value.codes.data,   p.moments.m.codes.data, p.moments.v.codes.data, count, p.key,
                            p.first,           ops::positions_of(p), float(p.weight_decay)};
      batch.first_block[i + 1] = batch.first_block[i] + unsigned(blocks);
    }
    adamw_kernel<P, G, M, N, Draws>
        <<<batch.first_block[batch.n], threads, 0, queue>>>(batch, ops::AdamWConstants(a, 0), a.step.as<ops::AdamWStep>());
    launched("adamw");
  }
}

template <class P, class G, class M, int N>
void launch(Queue queue, const ops::AdamW& a, Parameters parameters) {
  if constexpr (std::is_same_v<P, Bf16> || std::is_same_v<M, Bf16>) {
    const auto whole = std::stable_partition(parameters.begin(), parameters.end(), [](const auto* p) { return bool(p->places); });
    launch<P, G, M, N, ops::AdamWPlacedDraws>(queue, a, Parameters(parameters.begin(), whole));
    parameters.erase(parameters.begin(), whole);
  }
  launch<P, G, M, N, ops::AdamWDraws>(queue, a, parameters);
}

bool same_storages(const ops::AdamWParameter& a, const ops::AdamWParameter& b) {
  return a.value.storage == b.value.storage && a.grad.storage == b.grad.storage && a.moments.m.storage == b.moments.m.storage &&
         a.moments.v.storage == b.moments.v.storage;
}

// Of one combination of types: those that packs divide, then the others.
void update(Queue queue, const ops::AdamW& a, const Parameters& parameters) {
  ops::with_adamw_types(*parameters.front(), [&]<class P, class G, class M>() {
    // Eight elements share their draws.
    constexpr int widest = sizeof(P) + sizeof(M) < 2 * sizeof(float) ? 8 : 4;
    Parameters wide, narrow;
    for (const ops::AdamWParameter* p : parameters) (p->value.count() % widest == 0 ? wide : narrow).push_back(p);
    launch<P, G, M, widest>(queue, a, wide);
    launch<P, G, M, 1>(queue, a, narrow);
  });
}

}  // namespace

void adamw(Queue queue, const ops::AdamW& a, const Tensor& maxima) {
  Parameters left;
  for (const ops::AdamWParameter& p : a.parameters)
    if (p.value.count() > 0 && ops::is_plain(p)) left.push_back(&p);
  while (!left.empty()) {
    const ops::AdamWParameter& first = *left.front();
    const auto others = std::stable_partition(left.begin(), left.end(), [&](const auto* p) { return same_storages(*p, first); });
    update(queue, a, Parameters(left.begin(), others));
    left.erase(left.begin(), others);
  }
  update_stored(queue, a, maxima);
}

}  // namespace octet::cuda
