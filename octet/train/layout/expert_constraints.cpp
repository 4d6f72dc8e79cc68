#include <algorithm>

#include "octet/train/layout/constraint_parts.hpp"

namespace octet::train::constraints {
namespace {

// Of a rank of n: values of a stack of experts, or of their adapters, that are a multiple of a block of scales.
bool has_whole_stacks(const Layout& l, const Subject& s) {
  const auto whole = [&](std::int64_t all) { return all / l.experts % storage_block == 0; };
  if (!s.adapters) return whole(s.experts * s.shape.width * s.shape.experts.width);
  return std::ranges::all_of(s.part().stacks, [&](const Parameter* p) { return whole(p->shape.count()); });
}

// The variable whose scales a part of a stack would cut.
const optim::StateKey* cut_stack(const Layout& l, const Subject& s) {
  if (!s.optimizer || has_whole_stacks(l, s)) return nullptr;
  const optim::StateStorage storage = s.storage(l);
  const auto& keys = optim::state_keys();
  const auto found = std::ranges::find_if(keys, [&](const optim::StateKey& k) { return k.variable && scales_blocks(storage.*k.storage); });
  return found == keys.end() ? nullptr : &*found;
}

}  // namespace

Constraints of_experts() {
  return {
      {always, experts, "The experts and `ranks.data` are multiples of it.",
       [](const Layout& l, const Subject& s) { return s.experts > 0 && s.experts % l.experts == 0 && l.data % l.experts == 0; },
       [](const Layout& l, const Subject& s) {
         if (s.experts == 0) return std::string("the model has no experts; set it to 1");
         return format("{} experts per layer and ranks.data = {} must be multiples of it; the nearest number is {}", s.experts, l.data,
                       nearest(l.experts, [&](std::int64_t n) { return s.experts % n == 0 && l.data % n == 0; }));
       }},
      {here, experts, "`ranks.expert_room` is 0 or at least 1.",
       [](const Layout&, const Subject& s) { return s.expert_room == 0 || s.expert_room >= 1; },
       [](const Layout&, const Subject& s) {
         return format(
             "ranks.expert_room = {} is less memory than rows of equal loads need; set it to 1 or more, such as 1.25, or to 0 for that of "
             "the worst choice",
             s.expert_room);
       }},
      {here, experts, "With `comm.experts = \"e4m3\"`, activations are not FP16.",
       [](const Layout& l, const Subject& s) { return s.comm.experts != parallel::ExpertWire::e4m3 || is_wide(l, s); },
       [](const Layout& l, const Subject& s) {
         return format(
             "comm.experts = \"e4m3\" encodes activations in BF16 or FP32, and recipe.name = \"{}\" has FP16; set comm.experts = "
             "\"bf16\"",
             s.recipe_of(l));
       }},
      {here, experts, "With `comm.experts = \"e4m3\"`, the model's width is a multiple of 128.",
       [](const Layout&, const Subject& s) { return s.comm.experts != parallel::ExpertWire::e4m3 || s.shape.width % storage_block == 0; },
       [](const Layout&, const Subject& s) {
         return format("comm.experts = \"e4m3\" has a scale per {} values of a row, and model.width = {}; set comm.experts = \"bf16\"",
                       storage_block, s.shape.width);
       }},
      {here, experts, "Where moments or weights have a scale per 128 values, a rank's experts consist of complete blocks.",
       [](const Layout& l, const Subject& s) { return cut_stack(l, s) == nullptr; },
       [](const Layout& l, const Subject& s) {
         const optim::StateKey* const k = cut_stack(l, s);
         return format("{} = \"{}\" has a scale per {} values, and {} {} are no multiple of it; set {} = \"bf16\"", k->key,
                       s.storage(l).*k->storage, storage_block, s.experts / l.experts,
                       s.adapters ? format("adapters of experts of rank {}", s.adapters.rank)
                                  : format("experts of {} x {} values", s.shape.width, s.shape.experts.width),
                       k->key);
       }},
      {here, data, "The model's family is one of this version.",
       [](const Layout&, const Subject& s) { return s.experts == 0 || s.family() != nullptr; },
       says("this version plans this model, and does not train it")},
  };
}

}  // namespace octet::train::constraints
