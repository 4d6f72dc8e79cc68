#include "octet/train/layout/constraints.hpp"

#include <algorithm>

#include "octet/base/check.hpp"
#include "octet/base/text.hpp"
#include "octet/models/division.hpp"
#include "octet/optim/registry.hpp"
#include "octet/parallel/copied_gradients.hpp"

namespace octet::train {
namespace {

using enum LayoutConstraint::Holds;
using Axis = LayoutConstraint::Axis;
using parallel::Schedule;
using Constraints = std::vector<LayoutConstraint>;

template <std::int64_t Layout::*size>
constexpr Axis axis_of(std::string_view key) {
  return {key, [](const Layout& l) { return format("{}", l.*size); }, [](const Layout& l) { return l.*size > 1; }};
}
constexpr Axis tensor = axis_of<&Layout::tensor>("ranks.tensor"), context = axis_of<&Layout::context>("ranks.context");
constexpr Axis pipeline = axis_of<&Layout::pipeline>("ranks.pipeline"), chunks = axis_of<&Layout::chunks>("ranks.pipeline_chunks");
constexpr Axis schedule{"ranks.pipeline_schedule", [](const Layout& l) { return format("\"{}\"", to_text(l.schedule)); }, pipeline.used};
constexpr Axis zero{"ranks.zero", [](const Layout& l) { return format("{}", l.zero); }, [](const Layout& l) { return l.zero > 0; }};
constexpr Axis data{"ranks.data", [](const Layout& l) { return format("{}", l.data); }, [](const Layout&) { return true; }};
constexpr Axis shard{"ranks.shard", [](const Layout& l) { return format("{}", l.shard); }, [](const Layout& l) { return l.shard > 0; }};
constexpr Axis experts = axis_of<&Layout::experts>("ranks.expert");
constexpr Axis micro_batch{"train.batch", [](const Layout& l) { return format("{}", l.micro_batch); },
                           [](const Layout& l) { return l.eight_bit; }};

// A sentence without numbers.
auto says(std::string text) {
  return [text = std::move(text)](const Layout&, const Subject&) { return text; };
}

// The nearest number to n that `keeps`, of two equally near ones the smaller; 1 does.
template <class Keeps>
std::int64_t nearest(std::int64_t n, const Keeps& keeps) {
  for (std::int64_t d = 1;; ++d)
    for (const std::int64_t m : {n - d, n + d})
      if (m == 1 || (m > 1 && keeps(m))) return m;
}

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

// A size of a GEMM of 8-bit codes on one rank: its name, and the number.
struct LocalSize {
  const char* name = nullptr;
  std::int64_t size = 0;
};

// The first that is not a multiple of 16.
LocalSize odd_size(const Layout& l, const Subject& s) {
  const std::int64_t keys = std::max<std::int64_t>(1, s.shape.kv_heads / l.tensor) * s.shape.head_dim;
  for (const LocalSize& of : {LocalSize{"hidden columns", s.shape.hidden / l.tensor},
                              {"query columns", s.shape.heads * s.shape.head_dim / l.tensor},
                              {"key columns", keys},
                              {"tokens of a micro-batch", l.micro_batch * s.sequence / (l.tensor * l.context)}})
    if (of.size % 16 != 0) return of;
  return {};
}

// Each of n ranks has two segments of a sequence. Source: Llama Team 2024, "The Llama 3 Herd of Models", section 3.3.2.
bool has_segments(const Subject& s, std::int64_t ranks) { return s.sequence % (2 * ranks) == 0; }

// Whether that stage, or a higher one, divides something.
bool divides(const Layout& l, const Subject& s, std::int64_t stage) { return s.optimizer && l.shards() > 1 && l.zero >= stage; }

bool is_wide(const Layout& l, const Subject& s) { return !scaling::has_narrow_range(s.recipe_of(l)); }
LayoutConstraint wide_sums(const Axis& axis) {
  return {here, axis, "Activations are not FP16, whose sums between ranks overflow.", is_wide, [](const Layout& l, const Subject& s) {
            return format("recipe.name = \"{}\": sums of FP16 activations between ranks overflow; choose another recipe", s.recipe_of(l));
          }};
}
LayoutConstraint no_average(const Axis& axis) {
  return {here, axis, "`train.average` is 0.", [](const Layout&, const Subject& s) { return !s.average; },
          says("train.average keeps means of whole weights; set it to 0")};
}

// An optimizer that reads whole matrices.
bool divides_matrices(const Subject& s) { return !s.optimizer || !optim::optimizer_named(s.optimizer->name).whole_matrices; }
LayoutConstraint whole_matrices(const Axis& axis, bool (*keeps)(const Layout&, const Subject&), std::string remedy) {
  return {here, axis, "The optimizer does not read whole matrices (`muon` does).", keeps,
          [remedy = std::move(remedy)](const Layout&, const Subject& s) {
            return format(
                "optim.name = \"{}\" reads all values of a matrix at once, of which a rank would have a part; {}, or optim.name = "
                "\"adamw\"",
                s.optimizer->name, remedy);
          }};
}

Constraints of_steps() {
  return {
      {always, data, "Sequences of a step are a multiple of micro-batch x data.",
       [](const Layout& l, const Subject& s) { return s.sequences % (l.micro_batch * l.data) == 0; },
       [](const Layout& l, const Subject& s) {
         return format("{} sequences per step are not a multiple of micro-batch {} x data {}; change train.batch or train.accumulate",
                       s.sequences, l.micro_batch, l.data);
       }},
      {planned, micro_batch, "With 8-bit operands, columns and tokens of one rank are multiples of 16.",
       [](const Layout& l, const Subject& s) { return odd_size(l, s).name == nullptr; },
       [](const Layout& l, const Subject& s) {
         return format("{} {} of one GPU are not a multiple of 16, as 8-bit GEMMs need", odd_size(l, s).size, odd_size(l, s).name);
       }},
  };
}

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
      wide_sums(experts),
      no_average(experts),
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
      no_average(tensor),
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
      {here, tensor, "`model.router_balance` is not `sequence`, if `model.router_loss` is above 0.",
       [](const Layout&, const Subject& s) {
         const nn::Balance& b = s.shape.experts.balance;
         return !s.shape.experts || b.loss == 0 || b.over != nn::Balance::Over::sequence;
       },
       says("model.router_loss counts choices in complete sequences, of which tensor ranks have parts; set model.router_balance = "
            "\"layer\", "
            "or model.router_loss = 0")},
      no_adapters(
          tensor, [](const Layout&, const Subject& s) { return !s.adapters || (s.experts == 0 && !s.shape.latent); },
          "this version does not divide adapters of models with experts or latents; set ranks.tensor = 1"),
  };
}

Constraints of_context() {
  return {
      {here, context, format("The model is of the family {}.", families_that(&models::ModelFamily::rotary)),
       [](const Layout&, const Subject& s) { return s.family() != nullptr && s.family()->rotary; },
       [](const Layout&, const Subject& s) {
         return format("models of the family {} have learned positions, which are not divided; choose {}", s.shape.family,
                       families_that(&models::ModelFamily::rotary));
       }},
      wide_sums(context),
      {here, context, "`model.router_loss` is 0.",
       [](const Layout&, const Subject& s) { return !s.shape.experts || s.shape.experts.balance.loss == 0; },
       says("model.router_loss counts choices in complete sequences, of which ranks have parts; set it to 0")},
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

Constraints of_pipeline() {
  return {
      {always, pipeline, "Stages times chunks are at most the blocks.",
       [](const Layout& l, const Subject& s) { return l.pipeline * l.chunks <= s.shape.layers; },
       [](const Layout& l, const Subject& s) {
         return format(
             "model.layers = {} cannot be divided into {} parts; the largest number of ranks for ranks.pipeline_chunks = {} is {}",
             s.shape.layers, l.pipeline * l.chunks, l.chunks, s.shape.layers / l.chunks);
       }},
      {always, pipeline, "Stages have several chunks with `interleaved`, two with `dualpipe_v`, and one with other schedules.",
       [](const Layout& l, const Subject&) { return takes_chunks(l.schedule, l.chunks); },
       [](const Layout& l, const Subject&) {
         if (folds(l.schedule)) return format("ranks.pipeline_chunks = {}: stages of dualpipe_v have 2; leave the key out", l.chunks);
         if (l.chunks > 1) return format("ranks.pipeline_chunks = {} needs ranks.pipeline_schedule = \"interleaved\"", l.chunks);
         return std::string("ranks.pipeline_schedule = \"interleaved\" needs ranks.pipeline_chunks of at least 2");
       }},
      {always, schedule, "With `interleaved`, micro-batches are a multiple of the stages; with `dualpipe_v`, at least twice as many.",
       [](const Layout& l, const Subject& s) { return s.sequences == 0 || takes_micro_batches(l.schedule, s.pipeline(l)); },
       [](const Layout& l, const Subject& s) {
         return format("train.accumulate = {} must be {} ranks.pipeline = {}; set it to {}", s.micro_batches(l),
                       folds(l.schedule) ? "at least twice" : "a multiple of", l.pipeline, next_micro_batches(l.schedule, s.pipeline(l)));
       }},
      {planned, schedule, "The schedule is not `dualpipe_v`, which was not measured on GPUs.",
       [](const Layout& l, const Subject&) { return l.schedule != Schedule::dualpipe_v; },
       says("it was not measured on GPUs; predict it by --layout schedule=dualpipe_v")},
      {here, schedule, "With `dualpipe_v`, embedding and head are not one matrix.",
       [](const Layout& l, const Subject& s) { return !folds(l.schedule) || !s.shape.tied; },
       says("the first stage has both ends of the model, and the parts of a tied embedding's gradient come from different micro-batches; "
            "choose another schedule, or model.tied = \"no\"")},
      {always, pipeline, "ZeRO-2 and 3 are not used, since micro-batches are in flight.",
       [](const Layout& l, const Subject&) { return l.zero < 2; },
       [](const Layout& l, const Subject&) {
         return format("ranks.zero = {}: gradients and weights of micro-batches in flight cannot be divided; set ranks.zero = 1", l.zero);
       }},
      {planned, chunks, "Chunks are those of a pipeline.", [](const Layout& l, const Subject&) { return l.pipeline > 1; },
       says("chunks need a pipeline; set ranks.pipeline, or 1 chunk")},
      no_average(pipeline),
      {here, pipeline, "`model.router_balance` is not `model`.",
       [](const Layout&, const Subject& s) {
         const nn::Balance& b = s.shape.experts.balance;
         return !s.shape.experts || b.loss == 0 || b.over != nn::Balance::Over::model;
       },
       says("the loss of model.router_balance = \"model\" is over the layers of all stages; set model.router_balance = \"layer\"")},
      {here, pipeline, "Embedding and head are not one matrix, if tensor ranks divide them.",
       [](const Layout& l, const Subject& s) { return !s.shape.tied || l.tensor == 1; },
       says("with ranks.tensor > 1, a tied embedding would have copies and parts; choose one of the two")},
      {here, pipeline, "The family's models can be cut into stages.",
       [](const Layout&, const Subject& s) { return s.family() != nullptr && s.part().model->has_chunks(); },
       [](const Layout&, const Subject& s) {
         return format("models of the family {} cannot be cut into stages; set it to 1", s.shape.family);
       }},
  };
}

// Of groups that divide the data axis and have complete sets of experts; 0 where none does.
std::int64_t nearest_shard(const Layout& l) {
  std::int64_t best = 0;
  for (std::int64_t n = l.experts; n <= l.sharers(); n += l.experts)
    if (l.sharers() % n == 0 && (best == 0 || std::abs(n - l.shard) < std::abs(best - l.shard))) best = n;
  return best;
}

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
      {here, zero, "At stage 3, `train.average` is 0.", [](const Layout& l, const Subject& s) { return !divides(l, s, 3) || !s.average; },
       says("train.average keeps a mean of all weights; set ranks.zero = 2")},
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

}  // namespace

const LayoutConstraint* first_broken(const Layout& l, const Subject& s, std::initializer_list<LayoutConstraint::Holds> kinds) {
  for (const LayoutConstraint& rule : layout_constraints())
    if (std::ranges::find(kinds, rule.holds) != kinds.end() && rule.axis.used(l) && !rule.keeps(l, s)) return &rule;
  return nullptr;
}

std::string sentence(const LayoutConstraint* broken, const Layout& l, const Subject& s) {
  return broken == nullptr ? "" : format("{} = {}: {}", broken->axis.key, broken->axis.value(l), broken->why(l, s));
}

const std::vector<LayoutConstraint>& layout_constraints() {
  static const Constraints all = [] {
    Constraints out;
    for (const auto& of : {of_steps, of_tensor, of_context, of_experts, of_pipeline, of_zero})
      for (const LayoutConstraint& rule : of()) out.push_back(rule);
    return out;
  }();
  return all;
}

bool trains(const Layout& l, const Subject& s) { return first_broken(l, s, {always, here}) == nullptr; }

void require_layout(const Layout& l, const Subject& s) {
  if (const LayoutConstraint* rule = first_broken(l, s, {always, here})) throw ConfigError(sentence(rule, l, s));
}

}  // namespace octet::train
