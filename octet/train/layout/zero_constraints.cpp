#include "octet/train/layout/constraint_parts.hpp"

namespace octet::train::constraints {
namespace {

// Whether that stage, or a higher one, divides something.
bool divides(const Layout& l, const Subject& s, std::int64_t stage) { return s.optimizer && l.shards() > 1 && l.zero >= stage; }

// Of groups that divide the data axis and have complete sets of experts; 0 where none does.
std::int64_t nearest_shard(const Layout& l) {
  std::int64_t best = 0;
  for (std::int64_t n = l.experts; n <= l.sharers(); n += l.experts)
    if (l.sharers() % n == 0 && (best == 0 || std::abs(n - l.shard) < std::abs(best - l.shard))) best = n;
  return best;
}

}  // namespace

Constraints of_zero() {
  return {
      whole_matrices(
          zero, [](const Layout& l, const Subject& s) { return !divides(l, s, 1) || divides_matrices(s); }, "set ranks.zero = 0"),
      {here, zero, "At stages 2 and 3, gradients do not have one scale for a whole tensor.",
       [](const Layout& l, const Subject& s) { return !divides(l, s, 2) || !scales_tensor(s.storage(l).gradients); },
       [](const Layout& l, const Subject& s) {
         return format(
             "gradients in {} have one scale for a whole tensor, of which a rank has a part; set optim.gradients = \"e4m3\", or ranks.zero "
             "= 1",
             s.storage(l).gradients);
       }},
      {here, zero, "At stage 3, activations are not FP16.",
       [](const Layout& l, const Subject& s) { return !divides(l, s, 3) || is_wide(l, s); },
       says("a recipe with FP16 activations keeps a copy of all weights; set ranks.zero = 2")},
      {here, zero, "At stage 3, the family's models say which block they use next.",
       [](const Layout& l, const Subject& s) { return !divides(l, s, 3) || (s.family() != nullptr && s.part().model->opens_blocks()); },
       says("this model does not say which block it uses next, so its weights cannot be divided; set ranks.zero = 2")},
      {planned, zero, "The data or the context axis divides something.", [](const Layout& l, const Subject&) { return l.shards() > 1; },
       says("there is nothing to divide: data x context = 1; set it to 0")},
      {always, shard, "Data x context ranks are a multiple of it.",
       [](const Layout& l, const Subject&) { return l.sharers() % l.shard == 0; },
       [](const Layout& l, const Subject&) {
         return format("data x context = {} must be a multiple of it; the nearest number is {}", l.sharers(),
                       nearest(l.shard, [&](std::int64_t n) { return l.sharers() % n == 0; }));
       }},
      {always, shard, "ZeRO divides something (`ranks.zero` is at least 1).", [](const Layout& l, const Subject&) { return l.zero > 0; },
       says("ranks.zero = 0 divides no state among a group; set ranks.zero, or ranks.shard = 0")},
      {always, shard, "It is a multiple of `ranks.expert`.", [](const Layout& l, const Subject&) { return l.shard % l.experts == 0; },
       [](const Layout& l, const Subject&) {
         return format("a group has complete sets of experts, so it must be a multiple of ranks.expert = {}; the nearest number is {}",
                       l.experts, nearest_shard(l));
       }},
  };
}

}  // namespace octet::train::constraints
