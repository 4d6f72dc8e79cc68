#pragma once

#include "octet/tensor/stream.hpp"

namespace octet::ops {

/// How a router chooses experts and weighs them, from logits u [T, E]:
///
///   p = softmax(u) or sigmoid(u)
///   chosen: the K largest of p + bias among the best `kept_groups` of `groups` equal groups of experts; ties take the lower index
///   w_k = scaling p_k, with `normalize` scaling p_k / (sum of chosen p + floor); of the bias only the choice depends
///
/// Sources: DeepSeek-AI 2024, "DeepSeek-V3 Technical Report", eq. 13 to 16; Muennighoff et al. 2024, "OLMoE"; DeepSeek-V2, eq. 22 to 24.
struct Routing {
  enum class Score : std::uint8_t { softmax, sigmoid } score = Score::softmax;
  /// The rank of a group: its largest p + bias, or the sum of its two largest.
  enum class GroupScore : std::uint8_t { largest, two_largest } group_score = GroupScore::largest;
  std::int64_t choices = 1;  // K
  std::int64_t groups = 1, kept_groups = 1;
  bool normalize = false;
  float floor = 0;  // 1e-20 in DeepSeek-V3
  float scaling = 1;
  bool in_turn = false;  // for measurements of equal loads: token t chooses experts (t K + k) mod E
};

/// The places of rows among sequences of equal length: row t is token first + t of sequences of `length` tokens each, in their order.
/// Length 0: the rows are all tokens of the sequences.
struct SequenceRows {
  std::int64_t first = 0, length = 0;
};

/// logits: f32 [T, E]; bias: f32 [E] or empty; chosen: i32 [T, K], by descending p + bias or in turn; weights: f32 [T, K]; scores: f32 [T,
/// E] = p. A NaN or infinite logit makes weights and scores of its token NaN, and chooses experts 0 to K - 1.
struct RouteForward {
  Tensor logits, bias;
  Tensor chosen, weights, scores;
};
/// Throws ContractError on other shapes or dtypes, where E is above 1024 or no multiple of `groups` (64 at most), the kept groups have
/// fewer than K experts, or groups of one are ranked by their two largest.
void route_forward(Stream&, const Routing&, const RouteForward&);

/// dlogits = the gradient of u from those of the weights, of p (`dscores`, the same for all tokens of a sequence), and of the z-loss
/// z_loss * z_scale * sum over t of (log sum over e of exp u)^2; z_scale: f32 [1] on the device, or empty. dlogits: f32 [T, E],
/// overwritten; dweights: f32 [T, K]; dscores: f32 [S, E] for S sequences, of which `rows` says the place of each token, or empty; with
/// `relative` they are the gradient of p / (sum over e of p), as in RouteLoad.
struct RouteBackward {
  Tensor logits, scores, chosen, dweights;
  Tensor dscores = {};
  Tensor dlogits;
  float z_loss = 0;
  Tensor z_scale = {};
  bool relative = false;
  SequenceRows rows = {};
};
void route_backward(Stream&, const Routing&, const RouteBackward&);

/// The loads that losses and tables of balance read: per sequence and expert the number of choices and the sum of p over its tokens, both
/// added to. With `relative`, the sum is that of p / (sum over e of p), as DeepSeek-V3's loss per sequence has it. counts, sums: f32 [S,
/// E] for S sequences, of which `rows` says the place of each token. Strips of route_strip tokens of a sequence are summed in the order of
/// t, then the strips in theirs.
struct RouteLoad {
  Tensor chosen, scores;
  Tensor counts, sums;
  bool relative = false;
  SequenceRows rows = {};
};
void route_load(Stream&, const RouteLoad&);
inline constexpr std::int64_t route_strip = 64;

}  // namespace octet::ops
