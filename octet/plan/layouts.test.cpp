#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "octet/plan/dry_memory.hpp"
#include "octet/plan/search.hpp"
#include "octet/train/step/small_model.testing.hpp"

// The rules of layouts compared with engines, on small models and up to 8 ranks. OCTET_EVERY_PLAN=1 tries all of them, and the plans of all
// sizes; otherwise a part of those with experts and groups, and a few plans.

namespace octet::plan {
namespace {

using enum parallel::Schedule;
using train::LayoutConstraint;

constexpr Target gpu{.gemm_compute = DType::bf16, .device = Device::cuda, .multiprocessors = 132};

bool is_campaign() { return std::getenv("OCTET_EVERY_PLAN") != nullptr; }

// Groups of ranks that divide experts or state, of which some divide few axes.
struct Groups {
  std::int64_t experts = 1, shard = 0;
};
std::vector<Groups> groups_of(bool has_experts) {
  std::vector<Groups> out;
  for (const std::int64_t experts : {1, 2, 3, 4, 8})
    for (const std::int64_t shard : {0, 2, 3, 4})
      if (experts + shard > 1 && (experts == 1 || has_experts)) out.push_back({experts, shard});
  return out;
}

// All axes of up to 8 ranks with all schedules and stages of ZeRO, and every so manyth of those with groups.
template <class Use>
void each_layout(bool has_experts, std::size_t every, const Use& use) {
  struct Way {
    parallel::Schedule schedule;
    std::int64_t chunks;
  };
  const std::vector<Groups> groups = groups_of(has_experts);
  std::size_t number = 0;
  const auto with_groups = [&](Layout l) {
    use(l);
    for (const Groups& g : groups)
      if (++number % every == 0) l.experts = g.experts, l.shard = g.shard, use(l);
  };
  for (std::int64_t tensor = 1; tensor <= 8; ++tensor)
    for (std::int64_t pipeline = 1; tensor * pipeline <= 8; ++pipeline)
      for (std::int64_t context = 1; tensor * pipeline * context <= 8; ++context)
        for (std::int64_t data = 1; tensor * pipeline * context * data <= 8; ++data)
          for (const Way& way :
               {Way{one_f_one_b, 1}, {gpipe, 1}, {zero_bubble, 1}, {interleaved, 2}, {interleaved, 1}, {one_f_one_b, 2}, {dualpipe_v, 2}})
            for (std::int64_t zero = 0; zero <= 3 && (pipeline > 1 || way.schedule == one_f_one_b); ++zero)
              with_groups({.tensor = tensor,
                           .pipeline = pipeline,
                           .context = context,
                           .data = data,
                           .schedule = way.schedule,
                           .chunks = way.chunks,
                           .zero = zero});
}

// A model with options, of which some bar layouts.
struct Case {
  const char *name, *family, *recipe;
  void (*change)(train::EngineConfig&);
};

const models::ExpertsShape eight{.number = 8, .chosen = 2, .width = 64, .normalize = true};

const Case cases[] = {
    {"bf16", "llama", "bf16", [](auto&) {}},
    {"tied, O3", "qwen2", "current", [](auto& c) { c.shape.tied = true, c.optimizer->level = optim::Level::O3; }},
    {"one key head, O1", "llama", "block128", [](auto& c) { c.shape.kv_heads = 1, c.optimizer->level = optim::Level::O1; }},
    {"narrow, O2", "qwen3", "delayed", [](auto& c) { c.shape.width = 192, c.optimizer->level = optim::Level::O2; }},
    {"learned positions", "gpt2", "current", [](auto& c) { c.shape.kv_heads = c.shape.heads; }},
    {"FP16", "llama", "fp16", [](auto&) {}},
    {"average", "llama", "bf16", [](auto& c) { c.average = true; }},
    {"whole matrices", "llama", "bf16", [](auto& c) { c.optimizer->name = "muon"; }},
    {"adapters", "llama", "bf16", [](auto& c) { c.adapters.rank = 4; }},
    {"further tokens, tied", "deepseek_v3", "bf16",
     [](auto& c) {
       c.shape.latent = train::testing::small_latent(c.shape), c.shape.experts = eight, c.shape.tied = true, c.shape.mtp_depth = 1;
     }},
    {"experts in FP16", "qwen3_moe", "fp16", [](auto& c) { c.shape.experts = eight, c.average = true; }},
    {"experts in FP16 that travel as codes", "qwen3_moe", "fp16",
     [](auto& c) { c.shape.experts = eight, c.comm.experts = parallel::ExpertWire::e4m3; }},
    {"preferences", "llama", "bf16", [](auto& c) { c.preference.beta = 0.1, c.document_mask = true; }},
    {"shared factors", "llama", "bf16", [](auto& c) { c.comm.gradients = parallel::Wire::e4m3_shared; }},
    {"one scale per gradient", "llama", "bf16", [](auto& c) { c.optimizer->gradients = Storage::e4m3_tensor; }},
    {"tensor ranks in 8 bits", "llama", "current", [](auto& c) { c.comm.tensor = parallel::TensorWire::e4m3, c.shape.width = 72; }},
    {"experts", "qwen3_moe", "current", [](auto& c) { c.shape.experts = eight; }},
    {"experts, O2", "mixtral", "block128", [](auto& c) { c.shape.experts = eight, c.optimizer->level = optim::Level::O2; }},
    {"experts in 8 bits, odd", "olmoe", "bf16",
     [](auto& c) {
       c.shape.experts = eight, c.shape.width = 192, c.shape.experts.width = 40, c.comm.experts = parallel::ExpertWire::e4m3;
       c.optimizer->level = optim::Level::O3;
     }},
    {"experts that share a loss", "deepseek_moe", "bf16",
     [](auto& c) { c.shape.experts = eight, c.shape.experts.balance = {.over = nn::Balance::Over::model, .loss = 0.01}; }},
    {"latents, and a loss of sequences", "deepseek_v3", "block128",
     [](auto& c) {
       c.shape.latent = train::testing::small_latent(c.shape), c.shape.experts = eight, c.shape.experts.shared = 1;
       c.shape.experts.balance = {.over = nn::Balance::Over::sequence, .loss = 0.01};
     }},
    {"latents", "deepseek_v2", "current",
     [](auto& c) {
       c.shape.latent = train::testing::small_latent(c.shape), c.shape.latent.query_rank = 0, c.shape.experts = eight;
       c.optimizer->level = optim::Level::O1;
     }},
    {"experts with adapters", "qwen3_moe", "bf16", [](auto& c) { c.shape.experts = eight, c.adapters.rank = 4; }},
    {"experts, passes in turn, O3", "qwen3_moe", "current",
     [](auto& c) { c.shape.experts = eight, c.comm.turns = true, c.optimizer->level = optim::Level::O3; }},
    {"experts, passes in turn, tied", "olmoe", "block128",
     [](auto& c) { c.shape.experts = eight, c.comm.turns = true, c.shape.tied = true; }},
};

train::EngineConfig config_of(const Case& of) {
  train::EngineConfig c = train::testing::small_engine(of.family, of.recipe);
  c.shape.width = 256, c.shape.heads = 4, c.shape.kv_heads = 2, c.shape.head_dim = 64, c.shape.hidden = 512, c.shape.layers = 4;
  c.shape.vocabulary = 512, c.shape.max_sequence = c.sequence = 64, c.shape.tied = false;
  of.change(c);
  return c;
}

std::string refusal(train::EngineConfig c, const Layout& l, std::int64_t micro_batches) {
  set_ranks(c.ranks, l), c.planned_ranks = int(l.sharers()), c.micro_batches = micro_batches;
  try {
    for (const std::int64_t stage : std::set{std::int64_t(0), l.pipeline - 1})
      train::dry_run(c, gpu, 1, micro_batches, {.stage = int(stage)});
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

// A ContractError in a dry run is a rule that is missing, and fails the test.
TEST(Layouts, OfUpToEightRanksTrainExactlyWhereNoRuleIsBroken) {
  std::set<std::string> broken;
  std::int64_t trained = 0, number = 0;
  for (const Case& of : cases) {
    const train::EngineConfig config = config_of(of);
    each_layout(bool(config.shape.experts), is_campaign() ? 1 : 37, [&](Layout l) {
      const std::int64_t micro_batches = ++number % 2 == 0 ? 1 : l.pipeline + l.pipeline % 3;  // some are fewer than stages, or no multiple
      l.level = config.optimizer->level;
      train::Subject subject = train::subject_of(config, l.data);
      subject.sequences = micro_batches * l.data;
      const LayoutConstraint* rule = first_broken(l, subject, {LayoutConstraint::Holds::always, LayoutConstraint::Holds::here});
      EXPECT_EQ(refusal(config, l, micro_batches), sentence(rule, l, subject)) << of.name << ": " << to_text(l);
      trained += rule == nullptr;
      if (rule != nullptr) broken.insert(std::string(rule->axis.key) + ": " + rule->text);
    });
  }
  EXPECT_GT(trained, 300);
  // The others are about models and steps that an engine cannot be given.
  const auto engines = [](const LayoutConstraint& rule) { return rule.holds != LayoutConstraint::Holds::planned; };
  EXPECT_GE(std::int64_t(broken.size()) + 16, std::ranges::count_if(train::layout_constraints(), engines));
  std::printf("%d layouts, %d of them train, %d rules are broken\n", int(number), int(trained), int(broken.size()));
}

// Nodes of so many GPUs, and a model.
struct Searched {
  std::int64_t per_node, layers;
  bool tied, experts;
};

// Numbers that the search tries, besides those that rules of plans leave out.
bool is_tried(const Layout& l, const Searched& of) {
  const auto power_of_two = [](std::int64_t n) { return (n & (n - 1)) == 0; };
  return l.schedule != gpipe && l.context <= 2 && power_of_two(l.experts) && (l.shard == 0 || l.shard * l.tensor == of.per_node) &&
         (l.shard == 0 || l.shard < l.sharers());
}

TEST(Layouts, ThatTrainAreAllInTheSearchUnlessARuleOfPlansLeavesThemOut) {
  for (const Searched& of : {Searched{8, 4, false, false}, {8, 4, true, false}, {4, 5, false, false}, {4, 4, false, true}}) {
    train::EngineConfig config = config_of(cases[0]);
    if (of.experts) config.shape.family = "qwen3_moe", config.shape.experts = eight;
    config.shape.tied = of.tied, config.shape.layers = of.layers, config.sequence = 8192;
    for (std::int64_t gpus = 1; gpus <= 8; ++gpus) {
      Question q{.model = planned_model(config.shape), .eight_bit = false, .levels = {optim::Level::O0, optim::Level::O2}};
      q.job = {.sequence = 8192, .sequences = 12, .gpus = gpus, .memory = 80e9, .machine = machine::machine_constants("h100")};
      q.job.machine.devices_per_node = of.per_node;
      q.only_runnable = true, q.program = [](const Layout&) { return Software{}; };
      const train::Subject subject = subject_of(q);
      std::int64_t all = 0;
      each_layout(of.experts, 1, [&](Layout l) {
        if (l.gpus() != gpus || !is_tried(l, of)) return;
        for (l.micro_batch = 1; l.micro_batch <= 8; l.micro_batch *= 2)
          for (const optim::Level level : q.levels) {
            l.level = level;
            all += 3 *
                   (trains(l, subject) && first_broken(l, subject, {LayoutConstraint::Holds::planned}) == nullptr);  // three recomputations
          }
      });
      FormulaMemory memory(q.model, q.job, q.program);
      EXPECT_EQ(search(q, memory).valid, all) << gpus << " GPUs, " << of.per_node << " per node" << (of.tied ? ", tied" : "")
                                              << (of.experts ? ", experts" : "");
    }
  }
}

// A question about a size.
struct Asked {
  std::int64_t gpus;
  optim::Level level;
  const char* recipe;
};

std::vector<Asked> all_asked() {
  std::vector<Asked> out;
  for (const std::int64_t gpus : {1, 2, 8, 64, 512})
    for (int level = 0; level < optim::levels; ++level)
      for (const char* recipe : {"bf16", "current"}) out.push_back({gpus, optim::Level(level), recipe});
  return out;
}

// Keeps which layouts an engine was asked about, all stages of it, and their bytes.
class EngineMemory : public DryMemory {
 public:
  using DryMemory::DryMemory;
  double needed(const Layout& l) override { return asked_.emplace_back(l, DryMemory::needed(l)).second; }
  double of(const Layout& l) const {
    const auto found = std::ranges::find(asked_, l, &std::pair<Layout, double>::first);
    return found == asked_.end() ? 0 : found->second;
  }

 private:
  std::vector<std::pair<Layout, double>> asked_;
};

// The layouts of an answer that are not marked, each of which an engine accepts. For qwen2.5-0.5b the search asked it about two tensor
// ranks, which would cut blocks of 128 moments.
std::int64_t accepted_layouts(const models::ModelSize& size, const Asked& a) {
  const bool eight_bit = std::string(a.recipe) != "bf16";
  train::EngineConfig config = train::testing::small_engine("llama", a.recipe);
  config.shape = size.shape, config.sequence = 512;
  Question q{.model = planned_model(config.shape), .eight_bit = eight_bit, .levels = {a.level}, .run = train::subject_of(config, 1)};
  q.run.recipe = "bf16", q.run.eight_bit_recipe = "current";
  q.job = {.sequence = 512,
           .sequences = std::max<std::int64_t>(16, a.gpus),
           .gpus = a.gpus,
           .memory = 80e9,
           .machine = machine::machine_constants("h100")};
  q.program = [](const Layout& l) { return octet_software(optim::storage_of(l.level), l.zero, l.eight_bit); };
  EngineMemory memory(config, {.recipe = "current"}, {.recipe = "bf16"}, gpu, q.job);
  const std::string of = format("{}, {}, {} GPUs, {}: ", size.name, a.recipe, a.gpus, optim::to_text(a.level));
  std::vector<Candidate> all;
  try {
    const Answer answer = search(q, memory);
    all = answer.best;
    for (const auto& one : {answer.runnable, answer.other_precision})
      if (one) all.push_back(*one);
  } catch (const Error& e) {
    ADD_FAILURE() << of << e.what();
  }
  std::int64_t accepted = 0;
  for (const Candidate& c : all)
    if (not_trained(c.layout, q).empty()) {
      EXPECT_GT(memory.of(c.layout), 0) << of << to_text(c.layout);
      EXPECT_LE(memory.of(c.layout), usable_memory * q.job.memory) << of << to_text(c.layout);
      ++accepted;
    }
  return accepted;
}

TEST(Layouts, OfEverySizeThatAreNotMarkedTrain) {
  const std::vector<Asked> all = all_asked();
  const std::size_t step = is_campaign() ? 1 : 79;  // of all questions of all sizes, one after the other
  std::int64_t questions = 0, layouts = 0, none = 0;
  std::size_t number = 0;
  for (const models::ModelFamily& family : models::model_families())
    for (const models::ModelSize& size : family.sizes())
      for (const Asked& a : all) {
        if (number++ % step != 0) continue;
        const std::int64_t accepted = accepted_layouts(size, a);
        ++questions, layouts += accepted, none += accepted == 0;
      }
  std::printf("%d questions, %d of them without a layout that trains; %d layouts are accepted\n", int(questions), int(none), int(layouts));
}

TEST(Layouts, OfTensorRanksThatCutBlocksOfMomentsAreMarked) {
  Question q{.model = planned_model(models::model_size("qwen2.5-0.5b"))};
  const Layout tensor{.tensor = 2, .data = 4, .level = optim::Level::O2, .eight_bit = true};
  q.job = {.sequence = 512, .sequences = 16, .gpus = 8, .memory = 80e9, .machine = machine::machine_constants("h100")};
  EXPECT_NE(not_trained(tensor, q).find("ranks.tensor = 2: optim.m = \"e4m3\" has a scale per 128 values"), std::string::npos)
      << not_trained(tensor, q);
}

}  // namespace
}  // namespace octet::plan
