#include <vector>

#include "octet/ops/adamw/adamw.kernels.hpp"
#include "octet/ops/adamw/adamw.math.hpp"
#include "octet/tensor/cpu/draws.hpp"
#include "octet/tensor/cpu/pair.hpp"
#include "octet/tensor/cpu/parallel.hpp"

namespace octet::cpu::OCTET_ISA {
namespace {

constexpr std::int64_t piece_values = 4096;

struct Piece {
  const ops::AdamWParameter* of;
  std::int64_t begin, count;
};
std::vector<Piece> pieces_of(const ops::AdamW& a) {
  std::vector<Piece> pieces;
  for (const ops::AdamWParameter& p : a.parameters)
    for (std::int64_t at = 0, n = p.value.count(); at < n; at += piece_values)
      pieces.push_back({&p, at, n - at < piece_values ? n - at : piece_values});
  return pieces;
}

// The random words of a piece, generated in advance; see AdamWDraws.
struct PieceDraws {
  std::uint16_t halves[3][draw_room(piece_values)];

  void make(const ops::AdamWDraws& draws, const Piece& piece, int variable) {
    draw(draws.key, draws.stream(variable), piece.begin, piece.count, halves[variable]);
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
    if ((variable == 0 ? p.value : p.moments.m).dtype == DType::bf16) draws.make({p.key, step.updates}, piece, variable);
  ops::with_adamw_types(p, [&]<class P, class G, class M>() {
    const G* const grad = p.grad.as<G>() + piece.begin;
    P* const value = p.value.as<P>() + piece.begin;
    M *const m = p.moments.m.as<M>() + piece.begin, *const v = p.moments.v.as<M>() + piece.begin;
    std::int64_t done = 0;
    if constexpr (std::is_same_v<P, Bf16> || std::is_same_v<M, Bf16>)
      for (; done + pair_width <= piece.count; done += pair_width)
        ops::adamw_update(PairLane{}, Full{done}, constants, step, grad, value, m, v, draws);
    Lane{}.each(
        piece.count, [&](auto at) { ops::adamw_update(Lane{}, at, constants, step, grad, value, m, v, draws); }, done);
  });
}

}  // namespace

void adamw(const ops::AdamW& a) {
  const ops::AdamWStep step = *a.step.as<ops::AdamWStep>();
  if (step.skip != 0) return;
  const auto pieces = pieces_of(a);
  for_each(std::int64_t(pieces.size()), 28 * piece_values, [&](std::int64_t i) { update(a, step, pieces[std::size_t(i)]); });
}

}  // namespace octet::cpu::OCTET_ISA
