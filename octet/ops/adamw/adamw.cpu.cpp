#include <vector>

#include "octet/ops/adamw/adamw.kernels.hpp"
#include "octet/ops/adamw/views.hpp"
#include "octet/ops/stored/cpu/group.hpp"
#include "octet/tensor/cpu/draws.hpp"
#include "octet/tensor/cpu/pair.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

constexpr std::int64_t piece_values = 4096;

struct Piece {
  const ops::AdamWParameter* of;
  std::size_t number;  // of the parameter
  std::int64_t begin, count;
};
std::vector<Piece> pieces_of(const ops::AdamW& a) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < a.parameters.size(); ++i)
    for (std::int64_t at = 0, n = a.parameters[i].value.count(); at < n; at += piece_values)
      pieces.push_back({&a.parameters[i], i, at, n - at < piece_values ? n - at : piece_values});
  return pieces;
}

// The random words of a piece, generated in advance; see AdamWDraws.
struct PieceDraws {
  std::uint16_t halves[3][draw_room(piece_values)];

  void make(const ops::AdamWStep& step, const Piece& piece, int variable) {
    const ops::AdamWParameter& p = *piece.of;
    const std::uint64_t high = ops::AdamWDraws{p.key, step.updates}.stream(variable);
    const std::int64_t first = p.first + piece.begin;
    if (!p.places) return draw(p.key, high, first, piece.count, halves[variable]);
    const CutPositions places = ops::positions_of(p);
    std::uint16_t of_run[draw_room(piece_values + 8)];
    for (std::int64_t i = 0, n = 0; i < piece.count; i += n) {
      const std::int64_t place = places(first + i), skipped = place % 8, most = places.neighbours(first + i);
      n = most < piece.count - i ? most : piece.count - i;
      draw(p.key, high, place - skipped, skipped + n, of_run);
      __builtin_memcpy(halves[variable] + i, of_run + skipped, std::size_t(n) * sizeof *of_run);
    }
  }
  template <class Lanes, class Cursor>
  OCTET_HD void store(Lanes lanes, Bf16* p, Cursor at, typename Lanes::Value x, int variable) const {
    lanes.store_drawn(p, at, x, halves[variable]);
  }
};

void update(const ops::AdamW& a, const ops::AdamWStep& step, const Piece& piece) {
  const ops::AdamWParameter& p = *piece.of;
  const ops::AdamWConstants constants(a, p.weight_decay);
  PieceDraws draws;
  for (int variable = 0; variable < 3; ++variable)
    if ((variable == 0 ? p.value : p.moments.m).storage == Storage::bf16) draws.make(step, piece, variable);
  ops::with_adamw_types(p, [&]<class P, class G, class M>() {
    const G* const grad = p.grad.codes.as<G>() + piece.begin;
    P* const value = p.value.codes.as<P>() + piece.begin;
    M *const m = p.moments.m.codes.as<M>() + piece.begin, *const v = p.moments.v.codes.as<M>() + piece.begin;
    std::int64_t done = 0;
    if constexpr (std::is_same_v<P, Bf16> || std::is_same_v<M, Bf16>)
      for (; done + pair_width <= piece.count; done += pair_width)
        ops::adamw_update(PairLane{}, Full{done}, constants, step, grad, value, m, v, draws);
    Lane{}.each(
        piece.count, [&](auto at) { ops::adamw_update(Lane{}, at, constants, step, grad, value, m, v, draws); }, done);
  });
}

// Of any storage. Compiled once per direction and not once per combination: a group of 128 values is in the nearest cache.
[[gnu::noinline]] void load_any(const ops::StoredView& s, std::int64_t group, GroupLane::Group& x) {
  ops::load_group(GroupLane{}, s, group, x);
}
[[gnu::noinline]] void store_nearest(const ops::StoredView& s, std::int64_t group, const GroupLane::Group& x) {
  ops::store_group(GroupLane{}, s, group, x, ops::Nearest{});
}
[[gnu::noinline]] void store_drawn(const ops::StoredView& s, std::int64_t group, const GroupLane::Group& x, const DrawnHalves& draws) {
  ops::store_group(GroupLane{}, s, group, x, draws);
}

/// The groups first .. end of a piece whose storages are known, all of 128 values.
template <class Storages>
[[gnu::noinline]] void update_known(ops::AdamWViews p, const ops::AdamWConstants& constants, const ops::AdamWStep& step, float (&most)[3],
                                    const PieceDraws& draws, std::int64_t first, std::int64_t end) {
  Storages::set(p);
  const GroupLaneOf<true> lanes;
  for (std::int64_t group = first; group < end; ++group) {
    lanes.prefetch<Storages::grad>(p.grad, group + groups_ahead), lanes.prefetch<Storages::value>(p.value, group + groups_ahead);
    lanes.prefetch<Storages::m>(p.m, group + groups_ahead), lanes.prefetch<Storages::v>(p.v, group + groups_ahead);
    ops::adamw_group(
        lanes, p, constants, step, most,
        [&]<int variable>(const ops::StoredView& s, auto& x, std::integral_constant<int, variable>)
            [[gnu::always_inline]] { ops::load_group(ops::codec_of<Storages::of_variable[variable]>(), lanes, s, group, x); },
        [&]<int variable>(const ops::StoredView& s, const auto& x, std::integral_constant<int, variable>) [[gnu::always_inline]] {
          constexpr Storage storage = Storages::of_variable[variable];
          if constexpr (ops::rounds_stochastically(storage, ops::AdamWVariable(variable)))
            ops::store_group(ops::codec_of<storage>(), lanes, s, group, x, DrawnHalves{draws.halves[variable], first * storage_block});
          else ops::store_group(ops::codec_of<storage>(), lanes, s, group, x, ops::Nearest{});
        });
  }
}
/// Those of any storages.
void update_any(const ops::AdamWViews& p, const ops::AdamWConstants& constants, const ops::AdamWStep& step, float (&most)[3],
                const PieceDraws& draws, std::int64_t begin, std::int64_t first, std::int64_t end) {
  for (std::int64_t group = first; group < end; ++group)
    ops::adamw_group(
        GroupLane{}, p, constants, step, most, [&](const ops::StoredView& s, GroupLane::Group& x, int) { load_any(s, group, x); },
        [&](const ops::StoredView& s, const GroupLane::Group& x, int variable) {
          if (ops::rounds_stochastically(s.storage, ops::AdamWVariable(variable)))
            store_drawn(s, group, x, {draws.halves[variable], begin});
          else store_nearest(s, group, x);
        });
}

/// most: of this piece's new value, m and v.
void update_stored(const ops::AdamW& a, const ops::AdamWStep& step, const Piece& piece, float (&most)[3]) {
  ops::AdamWViews p = ops::views_of(*piece.of, 0, {});
  const ops::AdamWConstants constants(a, p.weight_decay);
  PieceDraws draws;
  for (int variable = 0; variable < 3; ++variable) {
    ops::StoredView& s = p.of(variable);
    if (ops::rounds_stochastically(s.storage, ops::AdamWVariable(variable))) draws.make(step, piece, variable);
    if (scales_tensor(s.storage)) s.next_scale = ops::reciprocal_of_power(ops::next_descale(p, variable, constants, step));
  }
  const std::int64_t first = piece.begin / storage_block, whole = first + piece.count / storage_block;
  std::int64_t done = first;
  ops::for_storages_of_levels([&]<class Storages>(Storages) {
    if (Storages::is(p)) update_known<Storages>(p, constants, step, most, draws, first, whole), done = whole;
  });
  update_any(p, constants, step, most, draws, piece.begin, done, first + ops::groups_of(piece.count));
}

/// The scales of the next update, of storages with one per tensor.
void keep_scales(const ops::AdamW& a, const ops::AdamWStep& step, const Tensor& maxima) {
  for (std::size_t i = 0; i < a.parameters.size(); ++i) {
    const ops::AdamWViews p = ops::views_of(a.parameters[i], i, maxima);
    for (int variable = 0; variable < 3; ++variable)
      if (scales_tensor(p.of(variable).storage)) ops::keep_tensor_scale(p, variable, ops::AdamWConstants(a, p.weight_decay), step);
  }
}

}  // namespace

void adamw(const ops::AdamW& a, const Tensor& maxima) {
  const ops::AdamWStep step = *a.step.as<ops::AdamWStep>();
  if (step.skip != 0) return;
  const auto pieces = pieces_of(a);
  struct Most {
    float of[3] = {};
  };
  std::vector<Most> most(maxima ? pieces.size() : 0);
  for_each(std::int64_t(pieces.size()), 28 * piece_values, [&](std::int64_t i) {
    const Piece& piece = pieces[std::size_t(i)];
    Most unused;
    if (ops::is_plain(*piece.of)) update(a, step, piece);
    else update_stored(a, step, piece, maxima ? most[std::size_t(i)].of : unused.of);
  });
  if (!maxima) return;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    for (int variable = 0; variable < 3; ++variable) {
      float& all = maxima.f32()[3 * pieces[i].number + std::size_t(variable)];
      all = larger(most[i].of[variable], all);
    }
  keep_scales(a, step, maxima);
}

}  // namespace octet::cpu::OCTET_ISA
