#include "octet/train/step/pipeline.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "octet/comm/dry_run/dry_run.hpp"
#include "octet/comm/threads/threads.hpp"
#include "octet/nn/host_values.hpp"
#include "octet/parallel/pipeline/division.hpp"
#include "octet/train/step/engine_layout.hpp"
#include "octet/train/step/evaluate.hpp"
#include "octet/train/step/readout.hpp"
#include "octet/train/step/small_model.testing.hpp"
#include "octet/train/step/stage.hpp"

// Stages of a pipeline on ranks that are threads, against one rank with the same micro-batches.

namespace octet::train {
namespace {

using namespace octet::train::testing;
using parallel::Schedule;

constexpr std::int64_t rows = 2, length = 32, layers = 6;

struct Result {
  double loss = 0, eval_loss = 0;
  std::map<std::string, std::vector<float>> gradients;
  std::vector<float> maxima;
};

EngineConfig config_of(const std::string& family, const std::string& recipe) {
  EngineConfig c = small_engine(family, recipe);
  c.shape.layers = layers;
  return c;
}

data::Batch batch_of(int micro_batch) { return random_batch(rows, length, 61, std::uint64_t(micro_batch)); }

std::vector<data::Batch> batches_of(int n) {
  std::vector<data::Batch> out;
  for (int i = 0; i < n; ++i) out.push_back(batch_of(i));
  return out;
}

constexpr scaling::Pass training{.kind = scaling::Pass::Kind::train, .keep = Lifetime::micro_batch, .count = false};

// Of a rank; a tied embedding's gradient is a sum over two of them.
void add_result(Engine& e, Result& out) {
  for (const Parameter* p : e.parameters.list()) {
    const Tensor values = p->gradient.stored().values();
    std::vector<float>& sum = out.gradients.try_emplace(p->path, std::size_t(values.count()), 0.0f).first->second;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values.f32()[i];
  }
  const Tensor maxima = e.precision.slots().amax();
  out.maxima.resize(std::size_t(maxima.count()));
  for (std::size_t i = 0; i < out.maxima.size(); ++i) out.maxima[i] = std::max(out.maxima[i], maxima.f32()[i]);
}

Result on_one_rank(const EngineConfig& c, int micro_batches) {
  Engine e(c, Device::cpu, machine::machine_target(Device::cpu));
  begin_steps(e);
  for (int i = 0; i < micro_batches; ++i) {
    const Scope scope(e.stream, Lifetime::micro_batch);
    const models::TokenBatch batch = upload(e.stream, batch_of(i), Lifetime::micro_batch);
    e.model->forward(e.stream, batch, training, e.loss_sums(), e.loss_factor(rows * length));
    e.model->backward(e.stream, batch, training);
  }
  Result out{.loss = *e.loss_sums().sum.as<double>(), .eval_loss = evaluate_batch(e, batch_of(77)).loss * rows * length};
  add_result(e, out);
  return out;
}

struct Shape {
  Schedule schedule;
  int stages, chunks, micro_batches;
};

std::vector<models::ModelChunk> chunks_of(const Shape& s, int stage) {
  const parallel::PipelineShape shape = parallel::pipeline_shape(s.schedule, s.stages, s.chunks, s.micro_batches);
  const std::vector<std::int64_t> division = parallel::divide_layers(layers, shape.parts(), {});
  std::vector<models::ModelChunk> out;
  int first = 0;
  for (int part = 0; part < int(division.size()); ++part) {
    const int end = first + int(division[std::size_t(part)]);
    if (shape.stage_of(part) == stage) out.push_back({first, end});
    first = end;
  }
  return out;
}

Result on_stages(EngineConfig config, const Shape& s, Pipeline::Wire wire = Pipeline::Wire::activations) {
  Result out;
  std::mutex mutex;
  comm::run_on_threads({.ranks = s.stages}, [&](comm::Communicator& stages) {
    EngineConfig c = config;
    c.model.chunks = chunks_of(s, stages.rank());
    Engine e(c, Device::cpu, machine::machine_target(Device::cpu));
    begin_steps(e);
    Pipeline pipeline(e.stream, *e.model, stages, s.schedule, s.chunks, wire);
    pipeline.train(batches_of(s.micro_batches), {.pass = training, .sums = e.loss_sums(), .factor = e.loss_factor(rows * length)});
    const nn::LossSums sums{e.stream.zeros({1}, DType::f64), e.stream.zeros({1}, DType::i64)};
    pipeline.loss(batch_of(77), {}, sums);
    const std::lock_guard lock(mutex);
    add_result(e, out);
    out.loss += *e.loss_sums().sum.as<double>(), out.eval_loss += *sums.sum.as<double>();
  });
  return out;
}

void expect_same(const Result& a, const Result& b, const std::string& tied, const std::string& where) {
  EXPECT_EQ(a.loss, b.loss) << where;
  EXPECT_EQ(a.eval_loss, b.eval_loss) << where;
  EXPECT_EQ(a.maxima, b.maxima) << where;
  ASSERT_EQ(a.gradients.size(), b.gradients.size()) << where;
  for (const auto& [path, gradient] : a.gradients) {
    if (path == tied) continue;
    EXPECT_EQ(gradient, b.gradients.at(path)) << where << " " << path;
  }
}

constexpr Shape shapes[] = {{Schedule::gpipe, 2, 1, 3},       {Schedule::gpipe, 3, 1, 4},       {Schedule::one_f_one_b, 2, 1, 1},
                            {Schedule::one_f_one_b, 2, 1, 5}, {Schedule::one_f_one_b, 4, 1, 6}, {Schedule::interleaved, 2, 3, 4},
                            {Schedule::interleaved, 3, 2, 6}, {Schedule::zero_bubble, 2, 1, 1}, {Schedule::zero_bubble, 2, 1, 5},
                            {Schedule::zero_bubble, 4, 1, 2}, {Schedule::zero_bubble, 4, 1, 6}, {Schedule::dualpipe_v, 2, 2, 4},
                            {Schedule::dualpipe_v, 3, 2, 7}};

TEST(Pipeline, HasTheBitsOfOneRankUnderEverySchedule) {
  for (const Shape& s : shapes)
    for (const char* recipe : {"fp32", "current"})
      expect_same(on_one_rank(config_of("llama", recipe), s.micro_batches), on_stages(config_of("llama", recipe), s), "",
                  format("{} {} stages {} chunks {}", to_text(s.schedule), s.stages, s.chunks, recipe));
}

TEST(Pipeline, HasTheBitsOfOneRankForEveryFamily) {
  const Shape s{Schedule::one_f_one_b, 2, 1, 3};
  for (const char* family : {"qwen3", "gpt2"})
    expect_same(on_one_rank(config_of(family, "delayed"), 3), on_stages(config_of(family, "delayed"), s), "embedding.weight", family);
}

// Operands of deferred products: codes and values, saved by forward, recomputed or decoded, with and without biases and norms of heads.
TEST(Pipeline, WithDeferredProductsHasTheBitsOfOneRankForEveryKindOfOperand) {
  const Shape s{Schedule::zero_bubble, 3, 1, 4};
  const auto expect = [&](const EngineConfig& c, const std::string& where) {
    expect_same(on_one_rank(c, s.micro_batches), on_stages(c, s), "embedding.weight", where);
  };
  for (const char* recipe : {"bf16", "block128", "mxfp8", "fp16"}) expect(config_of("gpt2", recipe), recipe);
  for (const char* family : {"qwen2", "qwen3"})
    for (const char* recipe : {"bf16", "delayed"}) expect(config_of(family, recipe), format("{} {}", family, recipe));
  for (const nn::Recompute& r : {nn::Recompute{.norm = true, .activation = true}, {.mlp = true}, {.attention = true}, {.block = true}})
    for (const char* recipe : {"bf16", "block128"}) {
      EngineConfig c = config_of("qwen3", recipe);
      c.model.recompute = r, c.model.recompute_layers = 5;
      if (r.block) c.model.recompute.attention = c.model.recompute.mlp = true;
      expect(c, format("{} recomputing {}{}{}{}", recipe, r.norm, r.mlp, r.attention, r.block));
    }
  for (const char* unquantized : {"", "*.attn.out"}) {
    EngineConfig c = config_of("llama", "current");
    c.precision.activations = scaling::SavedActivations::fp8;
    if (*unquantized != '\0') c.precision.keep_bf16 = {unquantized};
    expect(c, format("saved codes, {} in BF16", unquantized));
  }
}

TEST(Pipeline, InOneTurnHasTheSameBits) {
  const EngineConfig config = config_of("llama", "mxfp8");
  const Result one = on_one_rank(config, 1);
  for (const Shape& s : {Shape{Schedule::interleaved, 2, 3, 2}, {Schedule::zero_bubble, 2, 1, 2}, {Schedule::dualpipe_v, 2, 2, 4}}) {
    double loss = 0;
    comm::run_on_threads({.ranks = 2}, [&](comm::Communicator& stages) {
      EngineConfig c = config;
      c.model.chunks = chunks_of(s, stages.rank());
      Engine e(c, Device::cpu, machine::machine_target(Device::cpu));
      begin_steps(e);
      Pipeline pipeline(e.stream, *e.model, stages, s.schedule, s.chunks);
      pipeline.train_one(batch_of(0), {.pass = training, .sums = e.loss_sums(), .factor = e.loss_factor(rows * length)});
      for (const Parameter* p : e.parameters.list()) {
        const Tensor values = p->gradient.stored().values();
        EXPECT_EQ(std::vector<float>(values.f32(), values.f32() + values.count()), one.gradients.at(p->path)) << p->path;
      }
      if (stages.rank() == (folds(s.schedule) ? 0 : 1)) loss = *e.loss_sums().sum.as<double>();
    });
    EXPECT_EQ(loss, one.loss) << to_text(s.schedule);
  }
}

struct SlowEnd {
  ~SlowEnd() { std::this_thread::sleep_for(std::chrono::milliseconds(100)); }
};

// The next stage asks for boundaries that it has not received after their memory was freed, and before it is told of the failure.
TEST(Pipeline, AStageThatFailsEndsTheOthersWithItsError) {
  const Shape s{Schedule::gpipe, 2, 1, 6};
  int ended_by_other = 0;
  const auto train = [&](comm::Communicator& stages) {
    EngineConfig c = config_of("llama", "fp32");
    c.model.chunks = chunks_of(s, stages.rank());
    const SlowEnd after_memory_is_freed;
    Engine e(c, Device::cpu, machine::machine_target(Device::cpu));
    begin_steps(e);
    Pipeline pipeline(e.stream, *e.model, stages, s.schedule, s.chunks);
    const auto before = [&](int micro_batch) {
      if (stages.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      else if (micro_batch == 4) throw DataError("the file is torn");
    };
    pipeline.train(batches_of(s.micro_batches), {.pass = training, .sums = e.loss_sums(), .factor = {}, .before = before});
  };
  EXPECT_THROW(comm::run_on_threads({.ranks = s.stages, .limit_seconds = 20},
                                    [&](comm::Communicator& stages) {
                                      try {
                                        train(stages);
                                      } catch (const comm::CommError&) {
                                        ++ended_by_other;
                                        throw;
                                      }
                                    }),
               DataError);
  EXPECT_EQ(ended_by_other, 1);
}

// 8-bit codes of activations have an error of about 2.6% per value, of which a block's blend with its residual stream keeps a part.
TEST(Pipeline, WithCodesOnTheWireIsNear) {
  const Shape s{Schedule::one_f_one_b, 3, 1, 2};
  const Result one = on_one_rank(config_of("llama", "fp32"), 2), coded = on_stages(config_of("llama", "fp32"), s, Pipeline::Wire::e4m3);
  EXPECT_NE(coded.loss, one.loss);
  EXPECT_NEAR(coded.loss / one.loss, 1, 0.01);
  for (const auto& [path, gradient] : one.gradients) {
    double error = 0, energy = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i)
      error += std::pow(double(gradient[i]) - double(coded.gradients.at(path)[i]), 2), energy += std::pow(double(gradient[i]), 2);
    EXPECT_LT(std::sqrt(error / energy), 0.2) << path;
    EXPECT_TRUE(error > 0 || path.starts_with("lm_head")) << path;
  }
}

struct Mesh {
  std::int64_t data = 1, pipeline = 1;
  Schedule schedule = Schedule::one_f_one_b;
  std::int64_t chunks = 1, zero = 0;
};

struct Trained {
  std::vector<double> losses;
  std::map<std::string, std::vector<float>> weights;
};

// Four steps of four micro-batches on each data rank.
Trained trained_on(EngineConfig c, const Mesh& m) {
  c.ranks = {.data = m.data, .pipeline = m.pipeline, .schedule = m.schedule, .chunks = m.chunks, .zero = m.zero};
  Trained out;
  std::mutex mutex;
  comm::run_on_threads({.ranks = int(c.ranks.all())}, [&](comm::Communicator& all) {
    Engine e(c, Device::cpu, machine::machine_target(Device::cpu), &all);
    StepRunner runner = begin_steps(e);
    for (int step = 0; step < 4; ++step) {
      std::vector<data::Batch> batches;
      for (int i = 0; i < 4; ++i) batches.push_back(batch_of(100 * step + 10 * e.ranks().rank() + i));
      double loss = 0;
      runner.run(batches, {.learning_rate = 1e-2, .measure = true}, [&] { loss = double(read_out(e).loss); });
      if (all.rank() == 0) out.losses.push_back(loss);
    }
    const std::lock_guard lock(mutex);
    for (const ParameterSlice& p : e.parameters.slices()) {
      std::vector<float>& to = out.weights.try_emplace(p.parameter->path, std::size_t(p.parameter->shape.count())).first->second;
      std::vector<float> values(std::size_t(p.value.count()));
      nn::get_values(e.stream, p.value, values.data());
      std::copy(values.begin(), values.end(), to.begin() + p.first);
    }
  });
  return out;
}

void expect_near(const Trained& a, const Trained& b, double tolerance, const std::string& where) {
  for (std::size_t i = 0; i < a.losses.size(); ++i) EXPECT_NEAR(a.losses[i] / b.losses[i], 1, tolerance) << where << " step " << i + 1;
  ASSERT_EQ(a.weights.size(), b.weights.size()) << where;
  for (const auto& [path, values] : a.weights) {
    const std::vector<float>& others = b.weights.at(path);
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(values[i], others[i], tolerance + 1e-3 * tolerance * std::fabs(values[i])) << where << " " << path << " " << i;
  }
}

// All but the order in which squares of gradients are added, in f64, is the same: clipping may differ in the last bit.
TEST(PipelineSteps, TrainAsOneStageDoes) {
  for (const char* recipe : {"fp32", "delayed"}) {
    const EngineConfig c = config_of("llama", recipe);
    const Trained whole = trained_on(c, {});
    expect_near(trained_on(c, {.pipeline = 2}), whole, 1e-6, recipe);
    expect_near(trained_on(c, {.pipeline = 2, .schedule = Schedule::interleaved, .chunks = 2}), whole, 1e-6, recipe);
  }
}

TEST(PipelineSteps, TrainWithDataRanksZeroAndEightBitStates) {
  EngineConfig c = config_of("llama", "current");
  for (const optim::Level level : {optim::Level::O0, optim::Level::O3}) {
    c.optimizer->level = level;
    for (const std::int64_t zero : {0, 1})
      expect_near(trained_on(c, {.data = 2, .pipeline = 2, .zero = zero}), trained_on(c, {.data = 2, .zero = zero}), 1e-6,
                  format("{} zero {}", to_text(level), zero));
  }
}

// Sums over data ranks, 8-bit gradients with their draws, and clipping included.
TEST(PipelineSteps, WithDeferredProductsHaveTheBitsOfThoseInBackward) {
  const auto expect = [](const EngineConfig& c, Mesh m, const std::string& where) {
    const Trained at_once = trained_on(c, m);
    m.schedule = Schedule::zero_bubble;
    const Trained later = trained_on(c, m);
    EXPECT_EQ(later.losses, at_once.losses) << where;
    EXPECT_EQ(later.weights, at_once.weights) << where;
  };
  EngineConfig c = config_of("llama", "current");
  for (const std::int64_t zero : {0, 1})
    for (const optim::Level level : {optim::Level::O0, optim::Level::O3}) {
      c.optimizer->level = level;
      expect(c, {.data = 2, .pipeline = 2, .zero = zero}, format("{} zero {}", to_text(level), zero));
    }
  expect(c, {.pipeline = 4}, "O3 on 4 stages");
  expect_near(trained_on(c, {.data = 2, .pipeline = 2, .schedule = Schedule::dualpipe_v, .zero = 1}),
              trained_on(c, {.data = 2, .pipeline = 2, .zero = 1}), 1e-6, "O3, there and back");
  expect(config_of("qwen3", "delayed"), {.pipeline = 3}, "tied");
}

// Its gradient is a sum of two, which one rank adds per micro-batch.
TEST(PipelineSteps, TrainATiedEmbeddingOnBothEnds) {
  const EngineConfig c = config_of("qwen3", "fp32");
  expect_near(trained_on(c, {.pipeline = 3}), trained_on(c, {}), 1e-4, "qwen3");
  expect_near(trained_on(c, {.data = 2, .pipeline = 2, .zero = 1}), trained_on(c, {.data = 2, .zero = 1}), 1e-4, "qwen3 zero 1");
}

// One stage counts its gradient, but both update it, also where a moment's scale holds all values of a tensor.
TEST(PipelineSteps, UpdateBothCopiesOfATiedEmbeddingAlikeInEveryStorage) {
  EngineConfig c = config_of("qwen3", "bf16");
  c.ranks.pipeline = 2, c.optimizer->allow_unsafe = true;
  for (const optim::Level level : {optim::Level::O0, optim::Level::O1, optim::Level::O2, optim::Level::O3})
    for (const std::optional<Storage> m : {std::optional<Storage>(), std::optional(Storage::e4m3_tensor)}) {
      c.optimizer->level = level, c.optimizer->m = m;
      std::vector<float> copies[2];
      comm::run_on_threads({.ranks = 2}, [&](comm::Communicator& all) {
        Engine e(c, Device::cpu, machine::machine_target(Device::cpu), &all);
        StepRunner runner = begin_steps(e);
        for (int step = 0; step < 4; ++step) runner.run(batches_of(4), {.learning_rate = 1e-2});
        copies[all.rank()] = nn::flat_values(e.stream, {e.model->shared_by_ends()->value});
      });
      EXPECT_TRUE(copies[0] == copies[1]) << to_text(level) << (m ? " e4m3_tensor" : "");
    }
}

struct Counted {
  Work work;
  std::size_t in_use = 0, peak = 0;
  int recorded = 0;
};

// Eight steps of a stage without values; if replays are pretended, their bodies do not run.
Counted counted_on_gpu(EngineConfig c, const Mesh& m, int stage, bool pretends, bool every_other_measures) {
  c.ranks = {.data = m.data, .pipeline = m.pipeline, .schedule = m.schedule, .chunks = m.chunks, .zero = m.zero};
  c.planned_ranks = int(m.data);
  comm::DryRunCommunicator ranks(int(m.data * m.pipeline), int(m.data) * stage);
  Engine e(c, Device::null, {.device = Device::cuda, .multiprocessors = 132}, &ranks);
  StepRunner runner = begin_steps(e);
  if (pretends) e.pipeline.recordings().pretend();
  const std::vector<data::Batch> batches = batches_of(8);
  runner.calibrate(8, [] { return batch_of(1); });
  const auto measures = [&](int step) { return every_other_measures && step % 2 == 0; };
  for (int step = 0; step < 8; ++step)
    runner.run(batches, {.learning_rate = 1e-2, .measure = measures(step), .measure_next = measures(step + 1)});
  return {e.stream.work(), e.stream.arena().in_use(), e.stream.arena().peak().total, e.pipeline.recordings().recorded()};
}

// A replay leaves no state of the host behind. Work that follows, such as sums over data ranks and deferred products, does not need it.
TEST(PipelineSteps, ThatAreReplayedHaveTheSameWorkAndMemory) {
  constexpr Mesh meshes[] = {{.pipeline = 4, .schedule = Schedule::gpipe},
                             {.pipeline = 4},
                             {.pipeline = 2, .schedule = Schedule::interleaved, .chunks = 3},
                             {.pipeline = 4, .schedule = Schedule::zero_bubble},
                             {.pipeline = 2, .schedule = Schedule::dualpipe_v},
                             {.data = 2, .pipeline = 2, .schedule = Schedule::dualpipe_v, .zero = 1},
                             {.data = 2, .pipeline = 2, .zero = 1},
                             {.data = 2, .pipeline = 2, .schedule = Schedule::interleaved, .chunks = 2},
                             {.data = 2, .pipeline = 3, .schedule = Schedule::zero_bubble, .zero = 1}};
  for (const Mesh& m : meshes)
    for (const char* recipe : {"current", "delayed"})
      for (const bool recomputes : {false, true}) {
        EngineConfig c = config_of("qwen3", recipe);
        c.optimizer->level = recomputes ? optim::Level::O3 : optim::Level::O0;
        c.model.recompute.norm = c.model.recompute.attention = recomputes;
        for (int stage = 0; stage < m.pipeline; ++stage) {
          const Counted plain = counted_on_gpu(c, m, stage, false, true), replayed = counted_on_gpu(c, m, stage, true, true);
          const std::string where =
              format("{} {} stage {} of {}, {} data ranks, {}", to_text(m.schedule), recipe, stage, m.pipeline, m.data, recomputes);
          EXPECT_EQ(plain.recorded, 0) << where;
          EXPECT_GT(replayed.recorded, 0) << where;
          EXPECT_GT(replayed.recorded, counted_on_gpu(c, m, stage, true, false).recorded) << where << ": measured ones apart";
          EXPECT_EQ(replayed.work.ops, plain.work.ops) << where;
          EXPECT_EQ(replayed.work.collectives, plain.work.collectives) << where;
          EXPECT_EQ(replayed.work.sent_bytes, plain.work.sent_bytes) << where;
          EXPECT_EQ(replayed.in_use, plain.in_use) << where;
          EXPECT_EQ(replayed.peak, plain.peak) << where;
        }
      }
}

TEST(PipelineSteps, RefuseWhatAPipelineDoesNotHave) {
  const auto refusal = [](const auto& change) -> std::string {
    EngineConfig c = config_of("llama", "bf16");
    c.ranks.pipeline = 2;
    change(c);
    try {
      require_layout(layout_of(c, 1), subject_of(c, 1));
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(refusal([](EngineConfig&) {}), "");
  EXPECT_EQ(refusal([](EngineConfig& c) { c.ranks.pipeline = 8; }),
            "ranks.pipeline = 8: model.layers = 6 cannot be divided into 8 parts; the largest number of ranks for ranks.pipeline_chunks = "
            "1 is 6");
  EXPECT_EQ(refusal([](EngineConfig& c) { c.ranks.zero = 2; }),
            "ranks.pipeline = 2: ranks.zero = 2: gradients and weights of micro-batches in flight cannot be divided; set ranks.zero = 1");
  EXPECT_EQ(refusal([](EngineConfig& c) { c.ranks.chunks = 2; }),
            "ranks.pipeline = 2: ranks.pipeline_chunks = 2 needs ranks.pipeline_schedule = \"interleaved\"");
}

// Measured on 2 H100 with `delayed`: blocks 15 and 13 take 2,983 and 3,380 ms, so the head takes 4.0 blocks.
TEST(PipelineSteps, DivideBlocksByTheRateOfTheirPrecision) {
  const auto blocks_of_first = [](const scaling::PrecisionConfig& precision, const Target& target) {
    EngineConfig c{.shape = models::model_size("qwen2.5-7b"), .model = {}, .precision = precision, .sequence = 4096};
    c.ranks.pipeline = 2;
    const auto chunks = chunks_of_stages(c, target);
    EXPECT_EQ(chunks[1][0].first, chunks[0][0].end);
    EXPECT_EQ(chunks[1][0].end, 28);
    return chunks[0][0].end;
  };
  const Target hopper{.gemm_compute = DType::bf16, .device = Device::cuda, .multiprocessors = 132, .generation = 9};
  for (const char* recipe : {"delayed", "current", "rowwise", "block128"})
    EXPECT_EQ(blocks_of_first({.recipe = recipe}, hopper), 16) << recipe;
  EXPECT_EQ(blocks_of_first({.recipe = "bf16"}, hopper), 15);
  EXPECT_EQ(blocks_of_first({.recipe = "mxfp8", .emulation = true}, hopper), 15) << "decoded, as Hopper has no such products";
  EXPECT_EQ(blocks_of_first({.recipe = "delayed", .head = scaling::HeadPrecision::recipe}, hopper), 15);
  EXPECT_EQ(blocks_of_first({.recipe = "delayed", .first = 4}, hopper), 14) << "four blocks in BF16 take almost twice their time";
  EXPECT_EQ(blocks_of_first({.recipe = "delayed"}, {.gemm_compute = DType::bf16}), 15) << "CPUs decode all codes";
}

}  // namespace
}  // namespace octet::train
