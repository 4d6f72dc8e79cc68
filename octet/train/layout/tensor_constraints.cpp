#include <algorithm>

#include "octet/models/division.hpp"
#include "octet/parallel/copied_gradients.hpp"
#include "octet/train/layout/constraint_parts.hpp"

namespace octet::train::constraints {
namespace {

// The first rule of sizes that n ranks break: "model.heads = 6 must be a multiple of it"; "" for none.
std::string broken_size(const Layout& l, const Subject& s, std::int64_t n) {
  if (const std::string rule = models::broken_division(s.shape, n); !rule.empty()) return rule;
  const std::int64_t tokens = s.sequence / l.context;
  if (tokens % n == 0) return "";
  return format("data.sequence_length{} = {} must be a multiple of it", l.context > 1 ? " / ranks.context" : "", tokens);
}

std::int64_t own_tokens(const Layout& l, const Subject& s) { return s.sequence / l.context / l.tensor; }

bool has_whole_blocks(const Cut& cut) {
  return std::ranges::all_of(cut.pieces, [](const CutPiece& p) {
    const auto whole = [](std::int64_t n) { return n % storage_block == 0; };
    return whole(p.count) && whole(p.first) && (p.run >= p.count || (whole(p.run) && whole(p.stride)));
  });
}

// A variable with a scale per block of the whole parameter, of which a rank would have a part; its codes would not be those of one rank.
struct CutVariable {
  const optim::StateKey* key = nullptr;
  const Parameter* parameter = nullptr;
};

CutVariable cut_variable(const Layout& l, const Subject& s) {
  if (!s.optimizer) return {};
  const optim::StateStorage storage = s.storage(l);
  for (const optim::StateKey& k : optim::state_keys())
    if (k.variable && scales_blocks(storage.*k.storage))
      for (const Parameter* p : s.part(l.tensor).parameters)
        if (p->cut.alone > 0 && p->role != ParameterRole::vector && !has_whole_blocks(p->cut)) return {&k, p};
  return {};
}

std::string why_cut(const Layout& l, const Subject& s) {
  const CutVariable c = cut_variable(l, s);
  return format(
      "{} = \"{}\" has a scale per {} values, and the part of {} {} of each rank does not have whole blocks of them; set {} = \"bf16\", or "
      "choose widths that are multiples of {} x ranks.tensor",
      c.key->key, s.storage(l).*c.key->storage, storage_block, c.parameter->path, c.parameter->whole(), c.key->key, storage_block);
}

// A parameter of which several ranks have copies whose gradients they cannot sum; null for none. Where sums are divided, copies are summed
// as values of one micro-batch, which have no scales.
const Parameter* coded_copy(const Layout& l, const Subject& s) {
  if (!s.optimizer || (l.zero >= 2 && l.shards() > 1)) return nullptr;
  const auto& all = s.part(l.tensor).parameters;
  const auto found = std::ranges::find_if(all, [&](const Parameter* p) {
    return p->cut.copies > 1 && !parallel::CopiedGradients::sums_copies(p->cut, p->gradient_storage(s.storage(l).gradients));
  });
  return found == all.end() ? nullptr : *found;
}

}  // namespace

Constraints of_tensor() {
  return {
      {planned, tensor, "Tensor ranks are GPUs of one node.",
       [](const Layout& l, const Subject& s) { return s.per_node == 0 || l.tensor <= s.per_node; },
       [](const Layout&, const Subject& s) { return format("it is more than the {} GPUs of a node; set --per-node", s.per_node); }},
      {here, tensor, format("The model is of the family {}.", families_that(&models::ModelFamily::divides)),
       [](const Layout&, const Subject& s) { return s.family() != nullptr && s.family()->divides; },
       [](const Layout&, const Subject& s) {
         return format("models of the family {} cannot be divided within layers; set ranks.tensor = 1, or choose {}", s.shape.family,
                       families_that(&models::ModelFamily::divides));
       }},
      whole_matrices(
          tensor, [](const Layout&, const Subject& s) { return divides_matrices(s); }, "set ranks.tensor = 1"),
      wide_sums(tensor),
      {always, tensor,
       "Heads, the MLP's width, the padded vocabulary and a context rank's tokens are multiples of it. Key-value heads are a multiple or a "
       "divisor.",
       [](const Layout& l, const Subject& s) { return broken_size(l, s, l.tensor).empty(); },
       [](const Layout& l, const Subject& s) {
         return format("{}; the nearest number for this model is {}", broken_size(l, s, l.tensor),
                       nearest(l.tensor, [&](std::int64_t n) { return broken_size(l, s, n).empty(); }));
       }},
      {here, tensor, "With `comm.tensor = \"e4m3\"`, a rank's tokens of a sequence times the width are a multiple of 128.",
       [](const Layout& l, const Subject& s) {
         return s.comm.tensor != parallel::TensorWire::e4m3 || own_tokens(l, s) * s.shape.width % storage_block == 0;
       },
       [](const Layout& l, const Subject& s) {
         return format(
             "comm.tensor = \"e4m3\" has a scale per {} values, and a rank has {} tokens of a sequence x model.width = {}; set comm.tensor "
             "= \"bf16\"",
             storage_block, own_tokens(l, s), s.shape.width);
       }},
      {here, tensor, "Where moments or weights have a scale per 128 values, parts of matrices consist of complete blocks.",
       [](const Layout& l, const Subject& s) { return cut_variable(l, s).key == nullptr; }, why_cut},
      {here, tensor,
       "Where ranks have copies (shared key-value heads, latents, experts, adapters), gradients do not have one scale for a whole tensor.",
       [](const Layout& l, const Subject& s) { return coded_copy(l, s) == nullptr; },
       [](const Layout& l, const Subject& s) {
         const Parameter& p = *coded_copy(l, s);
         return format("{} ranks have copies of values of {}, whose gradients in {} cannot be summed; set optim.gradients = \"bf16\"",
                       p.cut.copies, p.path, s.storage(l).gradients);
       }},
  };
}

}  // namespace octet::train::constraints
