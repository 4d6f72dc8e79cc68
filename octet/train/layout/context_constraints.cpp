#include "octet/train/layout/constraint_parts.hpp"

namespace octet::train::constraints {
namespace {

// Each of n ranks has two segments of a sequence. Source: Llama Team 2024, "The Llama 3 Herd of Models", section 3.3.2.
bool has_segments(const Subject& s, std::int64_t ranks) { return s.sequence % (2 * ranks) == 0; }

}  // namespace

Constraints of_context() {
  return {
      {here, context, "The family's models take parts of sequences.",
       [](const Layout&, const Subject& s) { return s.family() != nullptr && s.family()->parts; },
       [](const Layout&, const Subject& s) {
         return format("models of the family {} take no parts of sequences; set it to 1", s.shape.family);
       }},
      wide_sums(context),
      {here, context, "No preferences are learned (`dpo.beta` is 0).", [](const Layout&, const Subject& s) { return !s.preferences; },
       says("dpo.beta: ranks would have parts of answers, whose log-probabilities are those of complete ones; set ranks.context = 1")},
      {here, context, "`recipe.attention` is `bf16`.", [](const Layout&, const Subject& s) { return !s.codes_attention; },
       says("a part of a sequence has no attention in 8 bits; set recipe.attention = \"bf16\", or ranks.context = 1")},
      {always, context, "The sequence is a multiple of twice its ranks.",
       [](const Layout& l, const Subject& s) { return has_segments(s, l.context); },
       [](const Layout& l, const Subject& s) {
         return format(
             "data.sequence_length = {} must be a multiple of {}, since each rank has two segments of a sequence; the nearest number for "
             "this length is {}",
             s.sequence, 2 * l.context, nearest(l.context, [&](std::int64_t n) { return has_segments(s, n); }));
       }},
  };
}

}  // namespace octet::train::constraints
