#pragma once

#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// Which of a slot's recent maxima decides its scale.
enum class AmaxChoice : std::uint8_t { max, most_recent };

inline constexpr std::int64_t scale_slot_floats = 64;  // of each slot in a scale table: 256 bytes

/// One step of a table of scales, each of which follows the maxima of its tensor. For every slot n, with last = history[0, first + n]
/// and so on:
///   where last != 0:  amax = max(history[1..L-1, n], last), or `last` when choice is most_recent;
///                     the history moves down one row: history[i] = history[i + 1], history[L - 1] = last, history[0] = 0;
///   where last == 0:  amax = 0, the history stays as it is;
///   scale = format_max * 2^-margin / amax, unless amax is 0, infinite or NaN: then as before; at most the largest float;
///   descale = 1 / scale.
/// NaN takes no part in a maximum. history: f32 [L, C], first + N <= C, row 0 is where quantizers raise the maxima of the current step;
/// scale and descale: f32 [N, 64], of which value places[n] is that of slot n; places: i32 [N]; format_max: f32 [N], each tensor's largest
/// code; skip: f32 [1] or empty, not 0: row 0 is set to 0 and nothing else changes. Source: Micikevicius et al. 2022, "FP8 Formats for Deep
/// Learning", section 3; the order of the history is that of Transformer Engine's delayed_scaling.cu, bulk kernel.
struct AmaxHistory {
  Tensor history;
  std::int64_t first = 0;  // column of the history that belongs to slot 0 of the other tables; those of others stay as they are
  Tensor scale, descale, places, format_max;
  Tensor skip = {};
  int margin = 0;
  AmaxChoice choice = AmaxChoice::max;
};
/// Throws ContractError on other shapes or dtypes, or a margin outside [-64, 64].
void advance_amax_history(Stream&, const AmaxHistory&);

}  // namespace octet::ops
