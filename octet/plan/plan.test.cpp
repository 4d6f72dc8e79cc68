#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "octet/config/read.hpp"
#include "octet/config/write.hpp"
#include "octet/models/registry.hpp"
#include "octet/plan/dry_memory.hpp"
#include "octet/plan/job_files.hpp"
#include "octet/plan/matrix.hpp"
#include "octet/plan/model_file.hpp"
#include "octet/plan/schedule_picture.hpp"
#include "octet/plan/table.hpp"
#include "octet/telemetry/report/well_formed.test.hpp"
#include "octet/train/step/small_model.testing.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::plan {
namespace {

constexpr Target gpu{.gemm_compute = DType::bf16, .device = Device::cuda, .multiprocessors = 132};

Software octet_program(const Layout& l) { return octet_software(optim::storage_of(l.level), l.zero, l.eight_bit); }

Job job_of(std::int64_t sequence, std::int64_t sequences, std::int64_t gpus, double memory = 80e9) {
  return {.sequence = sequence, .sequences = sequences, .gpus = gpus, .memory = memory, .machine = machine::machine_constants("h100")};
}

parallel::Schedule schedule_of(std::int64_t chunks, bool deferred) {
  using enum parallel::Schedule;
  return deferred ? zero_bubble : chunks > 1 ? interleaved : one_f_one_b;
}

// The arena's peak of every mesh that this version trains.
TEST(PlannedMemory, IsWithinThreePercentOfTheArenaOnEveryMeshThatRuns) {
  train::EngineConfig config = train::testing::small_engine("llama", "current");
  config.shape.width = 512, config.shape.hidden = 1536, config.shape.head_dim = 128, config.shape.layers = 11;
  config.shape.vocabulary = 2048, config.shape.max_sequence = 512;
  config.ranks.pipeline = 8;  // of the run: layouts have their own
  double worst = 0;
  for (const bool tied : {false, true})
    for (const auto& [tensor, data, pipeline, chunks, context] : {std::array{1, 1, 1, 1, 1},
                                                                  {1, 2, 1, 1, 1},
                                                                  {1, 8, 1, 1, 1},
                                                                  {2, 1, 1, 1, 1},
                                                                  {2, 4, 1, 1, 1},
                                                                  {4, 2, 1, 1, 1},
                                                                  {1, 1, 2, 1, 1},
                                                                  {1, 2, 4, 1, 1},
                                                                  {2, 2, 2, 1, 1},
                                                                  {1, 1, 2, 2, 1},
                                                                  {1, 1, 1, 1, 2},
                                                                  {1, 2, 1, 1, 4},
                                                                  {2, 1, 1, 1, 2},
                                                                  {1, 1, 2, 1, 2}})
      for (std::int64_t zero = 0; zero <= (data * context == 1 ? 0 : pipeline > 1 ? 1 : 3); ++zero)
        for (const bool eight_bit : {true, false})
          for (const auto& [level, recomputed, micro_batch, deferred] : {std::tuple{optim::Level::O0, Recomputed::none, 1, false},
                                                                         {optim::Level::O0, Recomputed::none, 1, true},
                                                                         {optim::Level::O2, Recomputed::norms, 2, false},
                                                                         {optim::Level::O2, Recomputed::norms, 2, true},
                                                                         {optim::Level::O3, Recomputed::block, 4, false},
                                                                         {optim::Level::O3, Recomputed::block, 4, true}}) {
            if (deferred && (pipeline == 1 || chunks > 1)) continue;
            config.shape.tied = tied;
            const PlannedModel model = planned_model(config.shape);
            const Job job = job_of(512, 64, tensor * data * pipeline * context);
            const Layout l{.tensor = tensor,
                           .pipeline = pipeline,
                           .context = context,
                           .data = data,
                           .schedule = schedule_of(chunks, deferred),
                           .chunks = chunks,
                           .zero = zero,
                           .micro_batch = micro_batch,
                           .recomputed = recomputed,
                           .level = level,
                           .eight_bit = eight_bit};
            train::Subject subject = train::subject_of(config, 0);
            subject.sequence = job.sequence;
            if (!trains(l, subject)) continue;
            DryMemory source(config, {.recipe = "current"}, {.recipe = "bf16"}, gpu, job);
            const double planned = stage_memory(source.layer_memory(l), model, l, job).largest().total();
            const double error = planned / double(source.arena(l).total) - 1;
            worst = std::max(worst, std::abs(error));
            EXPECT_LE(std::abs(error), 0.03) << to_text(l) << (eight_bit ? " FP8 " : " BF16 ") << optim::to_text(level)
                                             << (tied ? " tied" : "");
          }
  std::printf("largest difference from the arena %.2f%%\n", 100 * worst);
}

TEST(PlannedMemory, FormulasAgreeWithDryRunsWithinATenth) {
  train::EngineConfig config = train::testing::small_engine("llama", "current");
  config.shape = models::model_size("llama-3-8b");
  const PlannedModel model = planned_model(config.shape);
  for (const std::int64_t zero : {0, 1, 2, 3})
    for (const bool eight_bit : {true, false}) {
      const Job job = job_of(4096, 512, 8);
      const Layout l{.data = 8, .zero = zero, .micro_batch = 2, .eight_bit = eight_bit};
      DryMemory dry(config, {.recipe = "current"}, {.recipe = "bf16"}, gpu, job);
      FormulaMemory formula(model, job, octet_program);
      const double a = stage_memory(dry.layer_memory(l), model, l, job).largest().total();
      const double b = stage_memory(formula.layer_memory(l), model, l, job).largest().total();
      EXPECT_NEAR(b, a, 0.1 * a) << to_text(l) << (eight_bit ? " FP8" : " BF16");
    }
}

TEST(PlannedModelOf, DeepSeekV3Has671BillionParametersOf37BillionArePerToken) {
  const PlannedModel m = model_named("deepseek-v3");
  EXPECT_NEAR(m.parameters(), 671e9, 1e9);
  EXPECT_NEAR(double(m.layers()) * m.active_parameters() + m.end_parameters(), 37e9, 1e9);
}

TEST(PlannedModelOf, AFileWithExpertsIsThatModel) {
  const testing::Scratch scratch;
  ModelFile f;
  f.layers = 61, f.width = 7168, f.heads = 128, f.head_width = 128, f.hidden = 18432, f.vocabulary = 129280;
  f.attention_parameters = model_named("deepseek-v3").attention, f.score_width = 20480;
  f.experts = 256, f.experts_per_token = 8, f.shared_experts = 1, f.expert_hidden = 2048, f.dense_layers = 3;
  const PlannedModel read = model_named(scratch.write("v3.toml", config::to_toml(f)));
  EXPECT_EQ(read.parameters(), model_named("deepseek-v3").parameters());
  for (const auto& change : {+[](ModelFile& m) { m.experts_per_token = 0; }, +[](ModelFile& m) { m.kv_heads = 3; }}) {
    ModelFile wrong = f;
    change(wrong);
    EXPECT_THROW(wrong.model(), ConfigError);
  }
}

TEST(PlannedModelOf, ParametersAreThoseOfTheProgramWithoutVectors) {
  for (const char* size : {"llama-3-8b", "qwen2.5-0.5b", "gpt2-124m"}) {
    train::EngineConfig config = train::testing::small_engine("llama", "bf16");
    config.shape = models::model_size(size);
    const double whole = double(train::dry_run(config, gpu, 1, 1).parameters);
    EXPECT_NEAR(planned_model(config.shape).parameters(), whole, 0.01 * whole) << size;
  }
}

TEST(LayoutRules, EveryRefusalNamesItsNumbers) {
  using enum train::LayoutConstraint::Holds;
  Question q{.model = planned_model(models::model_size("qwen2.5-0.5b"))};  // 14 heads, 2 of keys, 24 layers
  const auto rule = [&](const Layout& l, std::int64_t sequence = 4096, std::int64_t sequences = 64) {
    q.job = job_of(sequence, sequences, l.gpus());
    const train::Subject subject = subject_of(q);
    return sentence(first_broken(l, subject, {always, planned}), l, subject);
  };
  using enum parallel::Schedule;
  EXPECT_EQ(rule({.tensor = 2, .data = 4, .zero = 1, .eight_bit = true}), "");
  EXPECT_NE(rule({.tensor = 4}).find("ranks.tensor = 4: model.heads = 14 must be a multiple of it"), std::string::npos);
  EXPECT_NE(rule({.tensor = 14}).find("more than the 8 GPUs of a node"), std::string::npos);
  EXPECT_NE(rule({.pipeline = 8, .schedule = interleaved, .chunks = 4}).find("model.layers = 24 cannot be divided into 32 parts"),
            std::string::npos);
  EXPECT_NE(rule({.pipeline = 5, .schedule = interleaved, .chunks = 2}).find("64 must be a multiple of ranks.pipeline = 5; set it to 65"),
            std::string::npos);
  EXPECT_NE(rule({.pipeline = 2, .schedule = zero_bubble, .chunks = 2}).find("needs ranks.pipeline_schedule = \"interleaved\""),
            std::string::npos);
  EXPECT_EQ(rule({.pipeline = 8, .schedule = zero_bubble}, 4096, 4), "") << "fewer micro-batches than stages train";
  EXPECT_NE(rule({.data = 3}).find("64 sequences per step are not a multiple of micro-batch 1 x data 3"), std::string::npos);
  EXPECT_NE(rule({.context = 4}, 4100).find("4100 must be a multiple of 8"), std::string::npos);
  EXPECT_NE(rule({.eight_bit = true}, 1000, 64).find("multiple of 16"), std::string::npos);
  EXPECT_NE(rule({.zero = 1}).find("nothing to divide"), std::string::npos);
  EXPECT_NE(rule({.pipeline = 2, .data = 2, .zero = 3}).find("set ranks.zero = 1"), std::string::npos);
  EXPECT_NE(rule({.data = 2, .experts = 2}).find("has no experts"), std::string::npos);
}

PlannedModel model_of(const std::string& name) {
  return name == "llama-3-70b" ? model_named(name) : planned_model(models::model_size(name));
}

Question question_of(const char* size, std::int64_t gpus, bool only_runnable = false) {
  return {.model = model_of(size), .job = job_of(4096, 512, gpus), .only_runnable = only_runnable, .program = octet_program};
}

Answer ask(const Question& q) {
  FormulaMemory memory(q.model, q.job, q.program);
  return search(q, memory);
}

TEST(LayoutSearch, NoValidLayoutThatFitsIsFasterByMoreThanTwoPercent) {
  const Question q = question_of("llama-3-8b", 16);
  const Answer a = ask(q);
  FormulaMemory memory(q.model, q.job, q.program);
  const train::Subject subject = subject_of(q);
  double least = 1e300;
  for (std::int64_t tensor = 1; tensor <= 8; ++tensor)
    for (std::int64_t pipeline = 1; pipeline <= 16; ++pipeline)
      for (std::int64_t data = 1; data <= 16; ++data)
        for (std::int64_t zero = 0; zero <= 3; ++zero)
          for (std::int64_t micro_batch = 1; micro_batch <= 64; micro_batch *= 2)
            for (const std::int64_t chunks : {1, 2, 4, 8})
              for (const auto& [r, deferred] : {std::pair{Recomputed::none, false},
                                                {Recomputed::norms, false},
                                                {Recomputed::block, false},
                                                {Recomputed::none, true},
                                                {Recomputed::norms, true},
                                                {Recomputed::block, true}}) {
                const Layout l{.tensor = tensor,
                               .pipeline = pipeline,
                               .data = data,
                               .schedule = schedule_of(chunks, deferred),
                               .chunks = chunks,
                               .zero = zero,
                               .micro_batch = micro_batch,
                               .recomputed = r,
                               .eight_bit = true};
                using enum train::LayoutConstraint::Holds;
                if (l.gpus() != q.job.gpus || first_broken(l, subject, {always, planned})) continue;
                if (q.model.layers() % (pipeline * chunks) != 0) continue;
                if (stage_memory(memory.layer_memory(l), q.model, l, q.job).largest().total() > usable_memory * q.job.memory) continue;
                least = std::min(least, step_time(q.model, l, q.job, q.program(l)).total());
              }
  ASSERT_EQ(a.best.size(), 5u);
  EXPECT_LE(a.best.front().time.total(), 1.02 * least);
  for (std::size_t i = 1; i < 5; ++i) EXPECT_GE(a.best[i].time.total(), 0.98 * a.best[i - 1].time.total());
  for (const Candidate& c : a.best) EXPECT_LE(c.memory.largest().total(), usable_memory * q.job.memory);
}

// The sum of parts is below the dry run's bytes by up to 1% with stages of a pipeline.
TEST(LayoutSearch, SaysNoLessMemoryThanALayoutNeeds) {
  struct Larger : FormulaMemory {
    using FormulaMemory::FormulaMemory;
    double needed(const Layout& l) override { return 3e9 * double(l.micro_batch) + 60e9; }
  };
  const Question q = question_of("qwen2.5-0.5b", 8);
  Larger source(q.model, q.job, q.program);
  const Answer a = search(q, source);
  ASSERT_FALSE(a.best.empty());
  for (const Candidate& c : a.best) {
    EXPECT_GE(c.memory.largest().total(), source.needed(c.layout)) << to_text(c.layout);
    EXPECT_LE(source.needed(c.layout), usable_memory * q.job.memory) << to_text(c.layout);
  }
}

TEST(PlannedMemory, KnowsTheBytesThatALayoutNeeds) {
  train::EngineConfig config = train::testing::small_engine("llama", "current");
  config.shape.layers = 7, config.shape.tied = false;
  for (const Layout& l : {Layout{}, Layout{.tensor = 2, .data = 2, .zero = 2}, Layout{.data = 4, .zero = 3, .shard = 2},
                          Layout{.pipeline = 2, .schedule = schedule_of(1, true)},
                          Layout{.pipeline = 4, .data = 2, .schedule = schedule_of(1, true), .zero = 1},
                          Layout{.pipeline = 3, .schedule = schedule_of(2, false), .chunks = 2},
                          Layout{.pipeline = 2, .micro_batch = 2, .recomputed = Recomputed::block}}) {
    DryMemory source(config, {.recipe = "current"}, {.recipe = "bf16"}, gpu, job_of(32, 96, l.gpus()));
    EXPECT_EQ(source.needed(l), double(source.arena(l).total)) << to_text(l);
  }
}

TEST(LayoutSearch, ChoosesByMemoryAndNetwork) {
  EXPECT_EQ(to_text(ask(question_of("qwen2.5-0.5b", 1)).best.front().layout).substr(0, 7), "one GPU");
  const Layout small = ask(question_of("qwen2.5-0.5b", 8)).best.front().layout;
  EXPECT_EQ(small.data, 8);
  const Answer large = ask(question_of("llama-3-70b", 64));
  ASSERT_FALSE(large.best.empty());
  EXPECT_TRUE(large.best.front().layout.tensor * large.best.front().layout.pipeline > 1 || large.best.front().layout.zero == 3);
  Question tiny = question_of("llama-3-70b", 1);
  EXPECT_TRUE(ask(tiny).best.empty());
  EXPECT_NE(nothing_fits(tiny, ask(tiny)).find("no layout fits on 1 GPU: one GPU, "), std::string::npos);
  Question odd = question_of("llama-3-8b", 37, true);
  odd.job.sequences = 3;
  EXPECT_NE(nothing_fits(odd, ask(odd)).find("no layout is valid on 37 GPUs: ranks.data = 37: 3 sequences per step are not a multiple"),
            std::string::npos);
}

// With few sequences per step data ranks have nothing to do, so other axes are among the best.
TEST(LayoutSearch, OfRunnableLayoutsHasTheBestOneThatIsTrained) {
  const auto question = [](bool only_runnable) {
    Question q = question_of("llama-3-8b", 64, only_runnable);
    q.job.sequences = 16;
    return q;
  };
  const Answer all = ask(question(false)), runnable = ask(question(true));
  ASSERT_TRUE(all.runnable);
  EXPECT_GT(all.runnable->layout.pipeline * all.runnable->layout.tensor, 1) << to_text(all.runnable->layout);
  EXPECT_EQ(to_text(runnable.best.front().layout), to_text(all.runnable->layout));
}

// The bubble is smaller by two thirds of GEMMs per stage; but what a forward takes longer than products of weights' gradients is lost in
// every micro-batch beyond the number of stages.
TEST(LayoutSearch, DefersProductsWhereMicroBatchesAreFew) {
  const PlannedModel model = planned_model(models::model_size("llama-3-8b"));
  const auto bubble = [&](std::int64_t micro_batches, bool deferred) {
    const Layout l{.pipeline = 8, .schedule = schedule_of(1, deferred)};
    return step_time(model, l, job_of(4096, micro_batches, 8), octet_program(l)).bubble;
  };
  const auto gemms = [&](std::int64_t micro_batches) {
    const Layout l{.pipeline = 8};
    return step_time(model, l, job_of(4096, micro_batches, 8), octet_program(l)).gemms / double(micro_batches);
  };
  EXPECT_NEAR(bubble(8, true), bubble(8, false) - 7 * 2 * gemms(8) / 3, 1e-6);
  EXPECT_GT(bubble(512, true), bubble(512, false));
  Question q = question_of("llama-3-8b", 16);
  q.job.sequences = 16, q.job.machine.network_gbs = 1, q.job.machine.link_gbs = 1;
  const Answer a = ask(q);
  ASSERT_FALSE(a.best.empty());
  EXPECT_EQ(a.best.front().layout.schedule, parallel::Schedule::zero_bubble) << to_text(a.best.front().layout);
}

TEST(LayoutSearch, ExpertsAreDividedWhereTheyAreMostOfTheModel) {
  Question q{.model = model_named("deepseek-v3"), .job = job_of(4096, 8192, 2048), .levels = {optim::Level::O0}, .program = octet_program};
  const Answer a = ask(q);
  ASSERT_FALSE(a.best.empty());
  EXPECT_GE(a.best.front().layout.experts, 8);
  EXPECT_GT(volume(q.model, a.best.front().layout, q.job, octet_program(a.best.front().layout)).experts, 0);
}

TEST(LayoutAnswer, ShowsSplitsTheLimitTheOtherPrecisionAndWhyTheSecondLost) {
  const Question q = question_of("llama-3-70b", 64);
  const std::string text = answer_text(q, ask(q));
  for (const char* part : {"1  ", "5  ", "tokens/s per GPU", "GEMMs", "first stage", "limit    ", "second   ", "BF16 instead"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(text.find("[not runnable by this version]"), std::string::npos) << text;
}

TEST(LayoutAnswer, MarksLayoutsThatThisVersionDoesNotTrain) {
  Question q = question_of("gpt2-124m", 16);
  q.job.sequences = 2;  // so that ranks must divide layers or matrices, of which this optimizer's have one owner
  q.run.optimizer->name = "muon";
  const std::string text = answer_text(q, ask(q));
  EXPECT_NE(text.find("[not runnable by this version]"), std::string::npos) << text;
}

TEST(JobFiles, TheRunFileIsAcceptedAndKeepsTheTokensOfAStep) {
  const testing::Scratch scratch;
  train::RunConfig run;
  run.model.size = "qwen2.5-0.5b", run.recipe.recipe = "current", run.train.batch = 4, run.train.accumulate = 64, run.train.steps = 10;
  run.data.sequence_length = 4096;
  const Layout l{.data = 8, .zero = 1, .micro_batch = 2, .recomputed = Recomputed::norms, .level = optim::Level::O2, .eight_bit = true};
  write_job(scratch.at("job"), run, l, job_of(4096, 256, 8), gpu);
  train::RunConfig back;
  config::read_toml_file(scratch.at("job/plan.toml"), back);
  EXPECT_EQ(back.tokens_per_step(), run.tokens_per_step());
  EXPECT_EQ(back.ranks.data, 8);
  EXPECT_EQ(back.ranks.zero, 1);
  EXPECT_EQ(back.train.batch, 2);
  EXPECT_EQ(back.optim.level, optim::Level::O2);
  EXPECT_NO_THROW(train::dry_run(train::engine_config(back), gpu, back.train.batch, back.train.accumulate));
  const std::string script = testing::bytes_of(scratch.at("job/plan.sbatch"));
  for (const char* line : {"#SBATCH --nodes=1\n", "#SBATCH --ntasks-per-node=8\n", "MASTER_ADDR=", "doctor", "job/plan.toml --name"})
    EXPECT_NE(script.find(line), std::string::npos) << line;
  EXPECT_EQ(std::system(("bash -n " + scratch.at("job/plan.sbatch")).c_str()), 0);
  train::RunConfig of_whole_matrices = run;
  of_whole_matrices.optim.name = "muon";
  EXPECT_THROW(write_job(scratch.at("other"), of_whole_matrices, {.tensor = 2, .data = 4}, job_of(4096, 256, 8), gpu), ConfigError);
  write_job(scratch.at("stages"), run, {.pipeline = 2, .data = 4, .schedule = schedule_of(3, false), .chunks = 3}, job_of(4096, 256, 8),
            gpu);
  config::read_toml_file(scratch.at("stages/plan.toml"), back);
  EXPECT_EQ(back.ranks.pipeline, 2);
  EXPECT_EQ(back.ranks.chunks, 3);
  EXPECT_EQ(back.ranks.schedule, parallel::Schedule::interleaved);
  const std::string odd = sbatch_text("it's $HOME", "a \"b\"/plan.toml", job_of(4096, 256, 8));
  EXPECT_NE(odd.find("--job-name='it'\\''s $HOME'\n"), std::string::npos) << odd;
  EXPECT_NE(odd.find(" train 'a \"b\"/plan.toml' --name "), std::string::npos) << odd;
}

TEST(SchedulePicture, IsWellFormedWithABoxPerComputingAction) {
  for (const parallel::Schedule schedule : parallel::schedules) {
    const parallel::PipelineShape shape =
        parallel::pipeline_shape(schedule, 4, schedule == parallel::Schedule::interleaved ? 2 : chunks_of(schedule, 1), 8);
    const std::string svg = schedule_svg(schedule, shape);
    std::size_t boxes = 0, actions = 0;
    for (std::size_t at = 0; (at = svg.find("class=\"part ", at)) != std::string::npos; ++at) ++boxes;
    for (const auto& stage : pipeline_actions(schedule, shape))
      actions += std::size_t(std::count_if(stage.begin(), stage.end(), [](const auto& a) { return a.computes(); }));
    const std::size_t legend = folds(schedule) ? 4 : schedule == parallel::Schedule::zero_bubble ? 3 : 2;
    EXPECT_EQ(boxes, actions + legend) << to_text(schedule);
    EXPECT_NE(svg.find("waiting"), std::string::npos);
  }
}

TEST(Guide, ThePageIsWhatTheCommandWrites) {
  EXPECT_EQ(testing::bytes_of(OCTET_SOURCE_DIR "/docs/parallelism-guide.md"), guide_text())
      << "run octet plan --matrix in the root of the repository";
}

TEST(MachineConstants, AFileReadsBackAndUnknownNamesAreRefused) {
  const testing::Scratch scratch;
  machine::MachineConstants m = machine::machine_constants("h200");
  m.name = "cluster", m.gemm_tflops = 611.5, m.fabric = {.devices_per_card = 2, .rails = true, .oversubscription = 2};
  const machine::MachineConstants back = machine::machine_constants(scratch.write("m.toml", config::to_toml(m, config::Comments::help)));
  EXPECT_EQ(back.name, "cluster");
  EXPECT_EQ(back.gemm_tflops, 611.5);
  EXPECT_EQ(back.memory_gb, 150.7);
  EXPECT_EQ(back.fabric.devices_per_card, 2);
  EXPECT_TRUE(back.fabric.rails && back.fabric.blocks());
  EXPECT_EQ(back.generation, 9);
  EXPECT_EQ(machine::target_of(machine::machine_constants("a100")).generation, 8);
  EXPECT_EQ(machine::target_of(machine::machine_constants("cpu2")).device, Device::cpu);
  EXPECT_THROW(machine::machine_constants("h300"), ConfigError);
}

}  // namespace
}  // namespace octet::plan
