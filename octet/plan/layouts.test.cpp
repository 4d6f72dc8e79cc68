#include <gtest/gtest.h>

#include <set>

#include "octet/plan/dry_memory.hpp"
#include "octet/plan/search.hpp"
#include "octet/train/step/small_model.testing.hpp"

// The rules of layouts compared with engines, on small models and up to 8 ranks.

namespace octet::plan {
namespace {

using enum parallel::Schedule;
using train::LayoutConstraint;

constexpr Target gpu{.gemm_compute = DType::bf16, .device = Device::cuda, .multiprocessors = 132};

// All axes of up to 8 ranks with all schedules and stages of ZeRO.
template <class Use>
void each_layout(const Use& use) {
  struct Way {
    parallel::Schedule schedule;
    std::int64_t chunks;
  };
  for (std::int64_t tensor = 1; tensor <= 8; ++tensor)
    for (std::int64_t pipeline = 1; tensor * pipeline <= 8; ++pipeline)
      for (std::int64_t context = 1; tensor * pipeline * context <= 8; ++context)
        for (std::int64_t data = 1; tensor * pipeline * context * data <= 8; ++data)
          for (const Way& way :
               {Way{one_f_one_b, 1}, {gpipe, 1}, {zero_bubble, 1}, {interleaved, 2}, {interleaved, 1}, {one_f_one_b, 2}, {dualpipe_v, 2}})
            for (std::int64_t zero = 0; zero <= 3 && (pipeline > 1 || way.schedule == one_f_one_b); ++zero) {
              use(Layout{.tensor = tensor,
                         .pipeline = pipeline,
                         .context = context,
                         .data = data,
                         .schedule = way.schedule,
                         .chunks = way.chunks,
                         .zero = zero});
              // Groups of 2, and of a number that divides few.
              if (tensor * pipeline * context == 1 && way.chunks == 1)
                for (const std::int64_t shard : {2, 3}) use(Layout{.data = data, .zero = zero, .shard = shard});
            }
}

// A model with options, of which some bar layouts.
struct Case {
  const char *name, *family, *recipe;
  void (*change)(train::EngineConfig&);
};

constexpr Case cases[] = {
    {"bf16", "llama", "bf16", [](auto&) {}},
    {"tied, O3", "qwen2", "current", [](auto& c) { c.shape.tied = true, c.optimizer->level = optim::Level::O3; }},
    {"one key head, O1", "llama", "block128", [](auto& c) { c.shape.kv_heads = 1, c.optimizer->level = optim::Level::O1; }},
    {"narrow, O2", "qwen3", "delayed", [](auto& c) { c.shape.width = 192, c.optimizer->level = optim::Level::O2; }},
    {"learned positions", "gpt2", "current", [](auto& c) { c.shape.kv_heads = c.shape.heads; }},
    {"FP16", "llama", "fp16", [](auto&) {}},
    {"average", "llama", "bf16", [](auto& c) { c.average = true; }},
    {"whole matrices", "llama", "bf16", [](auto& c) { c.optimizer->name = "muon"; }},
    {"adapters", "llama", "bf16", [](auto& c) { c.adapters.rank = 4; }},
    {"preferences", "llama", "bf16", [](auto& c) { c.preference.beta = 0.1, c.document_mask = true; }},
    {"shared factors", "llama", "bf16", [](auto& c) { c.comm.gradients = parallel::Wire::e4m3_shared; }},
    {"one scale per gradient", "llama", "bf16", [](auto& c) { c.optimizer->gradients = Storage::e4m3_tensor; }},
    {"tensor ranks in 8 bits", "llama", "current", [](auto& c) { c.comm.tensor = parallel::TensorWire::e4m3, c.shape.width = 72; }},
};

train::EngineConfig config_of(const Case& of) {
  train::EngineConfig c = train::testing::small_engine(of.family, of.recipe);
  c.shape.width = 256, c.shape.heads = 4, c.shape.kv_heads = 2, c.shape.head_dim = 64, c.shape.hidden = 512, c.shape.layers = 4;
  c.shape.vocabulary = 512, c.shape.max_sequence = c.sequence = 64, c.shape.tied = false;
  of.change(c);
  return c;
}

std::string refusal(train::EngineConfig c, const Layout& l, std::int64_t micro_batches) {
  c.ranks.tensor = l.tensor, c.ranks.context = l.context, c.ranks.pipeline = l.pipeline, c.ranks.data = l.data;
  c.ranks.schedule = l.schedule, c.ranks.chunks = l.chunks, c.ranks.zero = l.zero;
  c.ranks.shard = l.shard, c.planned_ranks = int(l.sharers()), c.micro_batches = micro_batches;
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
    each_layout([&](Layout l) {
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
  // The others are about models and steps that an engine cannot be given, and about experts, whose rules train/run/ranks tests.
  const auto engines = [](const LayoutConstraint& rule) { return rule.holds != LayoutConstraint::Holds::planned; };
  EXPECT_GE(std::int64_t(broken.size()) + 16, std::ranges::count_if(train::layout_constraints(), engines));
  std::printf("%d layouts, %d of them train, %d rules are broken\n", int(number), int(trained), int(broken.size()));
}

// By the same steps of micro-batch, chunks and context as the search.
TEST(Layouts, ThatTrainAreAllInTheSearchUnlessARuleOfPlansLeavesThemOut) {
  for (const bool tied : {false, true}) {
    train::EngineConfig config = config_of(cases[0]);
    config.shape.tied = tied, config.sequence = 8192;
    for (std::int64_t gpus = 1; gpus <= 8; ++gpus) {
      Question q{.model = planned_model(config.shape), .eight_bit = false, .levels = {optim::Level::O0, optim::Level::O2}};
      q.job = {.sequence = 8192, .sequences = 12, .gpus = gpus, .memory = 80e9, .machine = machine::machine_constants("h100")};
      q.only_runnable = true, q.program = [](const Layout&) { return Software{}; };
      const train::Subject subject = subject_of(q);
      std::int64_t all = 0;
      each_layout([&](Layout l) {
        if (l.gpus() != gpus || l.schedule == gpipe || l.context > 2 || l.shard > 0) return;  // all are within a node
        for (l.micro_batch = 1; l.micro_batch <= 8; l.micro_batch *= 2)
          for (const optim::Level level : q.levels) {
            l.level = level;
            all += 3 *
                   (trains(l, subject) && first_broken(l, subject, {LayoutConstraint::Holds::planned}) == nullptr);  // three recomputations
          }
      });
      FormulaMemory memory(q.model, q.job, q.program);
      EXPECT_EQ(search(q, memory).valid, all) << gpus << " GPUs" << (tied ? ", tied" : "");
    }
  }
}

// For qwen2.5-0.5b the search asked the engine about two tensor ranks, which would cut blocks of 128 moments.
TEST(Layouts, OfEverySizeAreNotTriedWhereTheEngineRefusesThem) {
  for (const models::ModelFamily& family : models::model_families())
    for (const models::ModelSize& size : family.sizes()) {
      train::EngineConfig config = train::testing::small_engine("llama", "current");
      config.shape = size.shape, config.sequence = 512;
      Question q{.model = planned_model(config.shape), .levels = {optim::Level::O2}, .run = train::subject_of(config, 1)};
      q.job = {.sequence = 512, .sequences = 16, .gpus = 8, .memory = 80e9, .machine = machine::machine_constants("h100")};
      q.program = [](const Layout& l) { return octet_software(optim::storage_of(l.level), l.zero, l.eight_bit); };
      DryMemory memory(config, config.precision, {.recipe = "bf16"}, gpu, q.job);
      for (const Candidate& c : search(q, memory).best)
        if (not_trained(c.layout, q).empty()) {
          EXPECT_NO_THROW(memory.arena(c.layout)) << size.name << ": " << to_text(c.layout);
        }
    }
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
