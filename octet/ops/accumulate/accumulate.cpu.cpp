#include "octet/ops/accumulate/accumulate.kernels.hpp"
#include "octet/ops/accumulate/accumulate.math.hpp"
#include "octet/ops/stored/cpu/group.hpp"
#include "octet/tensor/cpu/draws.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

constexpr std::int64_t groups_of_piece = ops::accumulate_piece / storage_block;

/// f(first, end) for the groups of each piece of `count` values.
template <class F>
void for_each_piece_of_groups(std::int64_t count, std::int64_t work, const F& f) {
  const std::int64_t groups = ops::groups_of(count);
  for_each(ceil_div(groups, groups_of_piece), work * ops::accumulate_piece, [&](std::int64_t i) {
    const std::int64_t first = i * groups_of_piece, end = first + groups_of_piece;
    f(first, end < groups ? end : groups);
  });
}

}  // namespace

void accumulate_blocks(const ops::Accumulate& a) {
  const ops::AccumulateDraws draws(a.key, a.draws.as<std::int64_t>());
  const ops::StoredView sum = ops::view_of(a.sum);
  dispatch<float, Bf16>(a.x.dtype, "accumulate", [&]<class T>() {
    for_each_piece_of_groups(sum.count, sizeof(T) + 2, [&](std::int64_t first, std::int64_t end) {
      std::uint16_t halves[draw_room(ops::accumulate_piece)];
      draw(draws.key, draws.stream, first * storage_block, (end - first) * storage_block, halves);
      const std::int64_t whole = end * storage_block <= sum.count ? end : end - 1;
      const auto add = [&](auto lanes, std::int64_t group) [[gnu::always_inline]] {
        ops::accumulate_group(ops::E4m3Codec{}, lanes, a.x.as<T>(), sum, draws.adds, group, DrawnHalves{halves, first * storage_block});
      };
      for (std::int64_t group = first; group < whole; ++group) {
        GroupLane{}.prefetch(a.x.as<T>(), sizeof(T), group + groups_ahead);
        if (draws.adds) GroupLane{}.prefetch<Storage::e4m3>(sum, group + groups_ahead);
        add(GroupLaneOf<true>{}, group);
      }
      if (whole < end) add(GroupLane{}, whole);
    });
  });
}

void accumulate_tensor(const ops::Accumulate& a, const Tensor& maxima) {
  const bool adds = ops::AccumulateDraws(a.key, a.draws.as<std::int64_t>()).adds;
  ops::StoredView sum = ops::view_of(a.sum);
  float* const scales = a.sum.scales.f32();
  float *const most = maxima.f32(), *const of_pieces = most + 1;
  dispatch<float, Bf16>(a.x.dtype, "accumulate", [&]<class T>() {
    for_each_piece_of_groups(sum.count, sizeof(T) + 1, [&](std::int64_t first, std::int64_t end) {
      float& largest = of_pieces[first / groups_of_piece] = 0;
      for (std::int64_t group = first; group < end; ++group) {
        GroupLane::Group v;
        ops::sums_of_group(ops::E4m3TensorCodec{}, GroupLane{}, a.x.as<T>(), sum, adds, group, v);
        largest = larger(ops::group_amax(GroupLane{}, v), largest);
      }
    });
    *most = 0;
    for (std::int64_t i = 0; i + 1 < maxima.count(); ++i) *most = larger(of_pieces[i], *most);
    const float descale = ops::tensor_descale_for(Storage::e4m3_tensor, *most);
    sum.next_scale = ops::reciprocal_of_power(descale);
    for_each_piece_of_groups(sum.count, sizeof(T) + 2, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t group = first; group < end; ++group)
        ops::accumulate_group(ops::E4m3TensorCodec{}, GroupLane{}, a.x.as<T>(), sum, adds, group, ops::Nearest{});
    });
    scales[0] = descale, scales[1] = ops::stored_amax(Storage::e4m3_tensor, *most, descale, false);
  });
}

}  // namespace octet::cpu::OCTET_ISA
