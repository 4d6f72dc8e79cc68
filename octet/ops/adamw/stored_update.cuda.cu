#include "octet/ops/adamw/stored_update.cuh"

#include <algorithm>
#include <vector>

#include "octet/ops/adamw/over_root.cuh"
#include "octet/ops/adamw/views.hpp"
#include "octet/ops/stored/cuda/group.cuh"
#include "octet/tensor/cuda/check.cuh"

namespace octet::cuda {
namespace {

constexpr int threads = 256, groups_at_once = threads / GroupLanes::threads, turns = 16;

constexpr int most_parameters = 20;
using Batch = ParameterBatch<ops::AdamWViews, most_parameters>;

template <bool whole>
struct UpdateLanes : GroupLanesOf<whole> {
  using Value = typename GroupLanesOf<whole>::Value;
  __device__ __forceinline__ Value over_root(const Value& a, const Value& x, float eps) const { return cuda::over_root(a, x, eps); }
};

/// The storages of one combination, known to the compiler; Any leaves them to branches that all threads of a block take alike.
struct Any {
  static constexpr bool whole = false, prefetches = false;
  static constexpr int blocks_at_once = 2;  // on a multiprocessor
  static bool is(const ops::AdamWViews&) { return true; }
  __device__ static void set(ops::AdamWViews&) {}
};
/// Those of a level, for parameters of whole pairs of groups. The loads of all variables are in flight at once.
template <class Storages>
struct Known : Storages {
  // f32 moments alone fill the memory's queues.
  static constexpr bool whole = true, prefetches = Storages::m == Storage::e4m3;
  static constexpr int blocks_at_once = Storages::value == Storage::f32 && prefetches ? 4 : 3;
  static bool is(const ops::AdamWViews& p) { return Storages::is(p) && p.value.count % (2 * storage_block) == 0; }
};

/// The draws of one variable of a whole parameter, and of a part of a larger one.
struct OfWhole {
  static constexpr int blocks_of(int at_once) { return at_once; }
  static bool is(const ops::AdamWViews& p) { return p.places.pieces == nullptr; }
  __device__ __forceinline__ static DrawnWords draws(const ops::AdamWViews& p, std::uint64_t stream, std::int64_t) {
    return {p.key, stream, p.first};
  }
};
struct OfPart {
  static constexpr int blocks_of(int at_once) { return at_once > 2 ? 2 : 1; }  // places take registers
  struct Held {
    DrawnWords::Eight words;  // of the thread's eight values, in one place for all storages
    __device__ __forceinline__ const DrawnWords::Eight& eight(std::int64_t) const { return words; }
  };
  static bool is(const ops::AdamWViews& p) { return !OfWhole::is(p); }
  __device__ __forceinline__ static Held draws(const ops::AdamWViews& p, std::uint64_t stream, std::int64_t at) {
    return {{ops::words_at(p.places, p.first + at, [&](std::int64_t e) { return philox_words(p.key, std::uint64_t(e), stream); })}};
  }
};

/// Asks the L2 cache for the codes of a group.
__device__ __forceinline__ void prefetch(const ops::StoredView& s, std::int64_t group) {
  const int bytes = s.storage == Storage::f32 ? 4 : s.storage == Storage::f16 || s.storage == Storage::bf16 ? 2 : 1;
  const auto* const at = static_cast<const char*>(s.codes) + (group * storage_block + GroupLanes{}.lane() * 8) * bytes;
  asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}

template <class Storages, class Extent>
__global__ void __launch_bounds__(threads, Extent::blocks_of(Storages::blocks_at_once))
    stored_adamw_kernel(const __grid_constant__ Batch batch, ops::AdamWConstants constants, const ops::AdamWStep* step) {
  constexpr UpdateLanes<Storages::whole> lanes;
  const ops::AdamWStep s = *step;
  if (s.skip != 0) return;
  const int i = batch.of_block(blockIdx.x);
  ops::AdamWViews p = batch.parameter[i];
  Storages::set(p);
  constants.weight_decay = p.weight_decay;
#pragma unroll
  for (int variable = 0; variable < 3; ++variable)
    if (scales_tensor(p.of(variable).storage))
      p.of(variable).next_scale = ops::reciprocal_of_power(ops::next_descale(p, variable, constants, s));
  float most[3] = {0, 0, 0};
  constexpr int at_once = groups_at_once;
  const std::int64_t first = std::int64_t(blockIdx.x - batch.first_block[i]) * at_once * turns;
  const std::int64_t even = ceil_div(ops::groups_of(p.value.count), std::int64_t(2)) * 2;  // a warp has two groups, or none
  const std::int64_t end = first + at_once * turns < even ? first + at_once * turns : even;
#pragma unroll 1
  for (std::int64_t group = first + threadIdx.x / GroupLanes::threads; group < end; group += at_once) {
    if (Storages::prefetches && group + at_once < end) {
      prefetch(p.grad, group + at_once), prefetch(p.value, group + at_once);
      prefetch(p.m, group + at_once), prefetch(p.v, group + at_once);
    }
    ops::adamw_group(
        lanes, p, constants, s, most, [&](const ops::StoredView& view, auto& x, int) { ops::load_group(lanes, view, group, x); },
        [&](const ops::StoredView& view, const auto& x, int variable) {
          if (ops::rounds_stochastically(view.storage, ops::AdamWVariable(variable)))
            ops::store_group(
                lanes, view, group, x,
                Extent::draws(p, ops::AdamWDraws{p.key, s.updates}.stream(variable), group * storage_block + lanes.lane() * 8));
          else ops::store_group(lanes, view, group, x, ops::Nearest{});
        });
  }
#pragma unroll
  for (int variable = 0; variable < 3; ++variable)
    if (scales_tensor(p.of(variable).storage)) {
      const float all = block_fold<threads>(most[variable], MaxFold{});
      // The bits of floats >= 0 are ordered as they are.
      if (threadIdx.x == 0) atomicMax(reinterpret_cast<int*>(p.maxima + variable), __float_as_int(all));
    }
}

// The scales of the next update: a thread per parameter.
__global__ void adamw_scales_kernel(const __grid_constant__ Batch batch, ops::AdamWConstants constants, const ops::AdamWStep* step) {
  const ops::AdamWStep s = *step;
  const int i = int(threadIdx.x);
  if (s.skip != 0 || i >= batch.n) return;
  const ops::AdamWViews& p = batch.parameter[i];
  constants.weight_decay = p.weight_decay;
  for (int variable = 0; variable < 3; ++variable)
    if (scales_tensor(p.of(variable).storage)) ops::keep_tensor_scale(p, variable, constants, s);
}

template <class Storages, class Extent>
void launch(Queue queue, const ops::AdamW& a, const std::vector<ops::AdamWViews>& parameters) {
  const ops::AdamWConstants constants(a, 0);
  const auto* const step = a.step.as<ops::AdamWStep>();
  for (std::size_t begin = 0; begin < parameters.size(); begin += most_parameters) {
    Batch batch{};
    batch.n = int(std::min<std::size_t>(most_parameters, parameters.size() - begin));
    bool tensors = false;
    for (int i = 0; i < batch.n; ++i) {
      const ops::AdamWViews& p = batch.parameter[i] = parameters[begin + std::size_t(i)];
      // An empty tensor has a block, too, so that its scales move as on a CPU.
      const std::int64_t blocks = ceil_div(ops::groups_of(p.value.count), std::int64_t(groups_at_once) * turns);
      batch.first_block[i + 1] = batch.first_block[i] + unsigned(std::max<std::int64_t>(blocks, 1));
      for (int variable = 0; variable < 3; ++variable) tensors |= scales_tensor(p.of(variable).storage);
    }
    stored_adamw_kernel<Storages, Extent><<<batch.first_block[batch.n], threads, 0, queue>>>(batch, constants, step);
    launched("adamw");
    if (!tensors) continue;
    adamw_scales_kernel<<<1, 32, 0, queue>>>(batch, constants, step);
    launched("adamw: scales");
  }
}

/// Those of these storages, which are then no longer left.
template <class Storages, class Extent>
void launch_known(Queue queue, const ops::AdamW& a, std::vector<ops::AdamWViews>& left) {
  const auto others =
      std::stable_partition(left.begin(), left.end(), [](const ops::AdamWViews& p) { return Storages::is(p) && Extent::is(p); });
  launch<Storages, Extent>(queue, a, std::vector<ops::AdamWViews>(left.begin(), others));
  left.erase(left.begin(), others);
}

}  // namespace

void update_stored(Queue queue, const ops::AdamW& a, const Tensor& maxima) {
  std::vector<ops::AdamWViews> left;
  for (std::size_t i = 0; i < a.parameters.size(); ++i)
    if (!ops::is_plain(a.parameters[i])) left.push_back(ops::views_of(a.parameters[i], i, maxima));
  ops::for_storages_of_levels([&]<class Storages>(Storages) { launch_known<Known<Storages>, OfWhole>(queue, a, left); });
  ops::for_storages_of_levels([&]<class Storages>(Storages) { launch_known<Known<Storages>, OfPart>(queue, a, left); });
  launch_known<Any, OfWhole>(queue, a, left);
  launch<Any, OfPart>(queue, a, left);
}

}  // namespace octet::cuda
