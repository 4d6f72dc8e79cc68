#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "octet/models/registry.hpp"
#include "octet/plan/memory.hpp"
#include "octet/plan/model_file.hpp"
#include "octet/plan/published.testing.hpp"
#include "octet/plan/time.hpp"

// Predictions compared with published figures of other programs: one set of assumptions per program, no constant of a model or a row.

namespace octet::plan {
namespace {

using enum parallel::Schedule;

constexpr double gib = 1024.0 * 1024 * 1024;

Job job_of(std::int64_t sequence, std::int64_t sequences, std::int64_t gpus) {
  return {.sequence = sequence,
          .sequences = sequences,
          .gpus = gpus,
          .memory = 80e9,
          .machine = machine::machine_constants("h100"),
          .even_stages = true};
}

// FP8-LM, second version, the table of memory, speed and volume: H100 80 GB, sequence 2048.
struct Fp8Lm {
  const char* model;
  std::int64_t layers, width, heads, tensor, pipeline, data;
  Software (*program)();
  std::int64_t micro_batch;
  double memory, samples, volume;  // GiB, per second, GiB

  PlannedModel planned() const {
    // The volumes of all models follow from a vocabulary of 100,352, that of cl100k_base, padded.
    return gpt_model(layers, width, heads, 100352);
  }
  Layout layout() const {
    return {.tensor = tensor, .pipeline = pipeline, .data = data, .zero = 1, .micro_batch = micro_batch, .eight_bit = program().eight_bit};
  }
  // The global batch is not published; the authors' script of 13B has 1280.
  Job job() const { return job_of(2048, 1280, tensor * pipeline * data); }
  std::string name() const { return format("{} {} micro-batch {}", model, program().name, micro_batch); }
};

const std::vector<Fp8Lm>& fp8_lm_rows() {
  static const std::vector<Fp8Lm> rows = [] {
    std::vector<Fp8Lm> out;
    const auto add = [&](Fp8Lm base, std::vector<std::array<double, 3>> values) {
      Software (*programs[])() = {megatron_bf16, megatron_transformer_engine, megatron_fp8_lm, megatron_fp8_lm};
      for (std::size_t i = 0; i < 4; ++i) {
        base.program = programs[i], base.memory = values[i][0], base.samples = values[i][1], base.volume = values[i][2];
        if (i == 3) base.micro_batch = 4;
        out.push_back(base);
      }
    };
    add({"7B", 32, 4096, 32, 1, 1, 32, nullptr, 2}, {{69.6, 159.2, 37.2}, {77.3, 224.5, 37.2}, {49.4, 219.8, 13.9}, {69.3, 230.5, 13.9}});
    add({"13B", 40, 5120, 40, 2, 1, 16, nullptr, 2}, {{68.2, 79.3, 34.3}, {76.4, 111.7, 34.3}, {48.9, 109.5, 12.4}, {67.8, 121.5, 12.4}});
    add({"175B", 96, 12288, 96, 8, 4, 4, nullptr, 1}, {{66.1, 22.4, 23.4}, {69.6, 28.7, 23.4}, {40.3, 27.1, 8.2}, {57.7, 39.3, 8.2}});
    return out;
  }();
  return rows;
}

double memory_error(const Fp8Lm& row) {
  const PlannedModel model = row.planned();
  const Job job = row.job();
  FormulaMemory source(model, job, [&](const Layout&) { return row.program(); });
  const LayoutMemory memory = stage_memory(source.layer_memory(row.layout()), model, row.layout(), job);
  return memory.largest().total() / gib / row.memory - 1;
}

TEST(Published, MemoryOfFp8LmIsWithinATenthInElevenOfTwelveRows) {
  for (const Fp8Lm& row : fp8_lm_rows()) {
    const double error = memory_error(row);
    std::printf("%-55s %5.1f GiB %+5.1f%%\n", row.name().c_str(), row.memory, 100 * error);
    // 13B at micro-batch 4 has 9 GiB more than these assumptions explain, which hold for the same model at micro-batch 2.
    const bool exception = std::string(row.model) == "13B" && row.micro_batch == 4;
    EXPECT_LE(std::abs(error), exception ? 0.15 : 0.10) << row.name();
  }
}

TEST(Published, BytesOfFp8LmOnTheDataAxisAreWithinAHundredth) {
  for (const Fp8Lm& row : fp8_lm_rows()) {
    // Published is the volume of a stage with an embedding.
    const Volume sent = volume(row.planned(), row.layout(), row.job(), row.program());
    EXPECT_NEAR(sent.data / gib, row.volume, 0.01 * row.volume) << row.name();
  }
}

double samples_per_second(const Fp8Lm& row) {
  return double(row.job().sequences) / step_time(row.planned(), row.layout(), row.job(), row.program()).total();
}

// The rates of "h100" were not fitted to these rows. The starts of kernels of a program without graphs, 1 ms per block, were chosen on
// them.
TEST(Published, SpeedsOfFp8LmAndTheirRatiosAreWithin15Percent) {
  for (const Fp8Lm& row : fp8_lm_rows()) {
    const double predicted = samples_per_second(row);
    std::printf("%-55s %6.1f samples/s, predicted %6.1f, %+5.1f%%\n", row.name().c_str(), row.samples, predicted,
                100 * (predicted / row.samples - 1));
    EXPECT_NEAR(predicted, row.samples, 0.15 * row.samples) << row.name();
  }
  const auto rows = fp8_lm_rows();
  const double bf16 = samples_per_second(rows[8]), te = samples_per_second(rows[9]), equal = samples_per_second(rows[10]),
               large = samples_per_second(rows[11]);
  std::printf("FP8-LM over BF16 %.2f (1.75), over Transformer Engine %.2f (1.37), at equal micro-batch %.2f (0.94)\n", large / bf16,
              large / te, equal / te);
  EXPECT_NEAR(large / bf16, 1.75, 0.15 * 1.75);
  EXPECT_NEAR(large / te, 1.37, 0.15 * 1.37);
  EXPECT_NEAR(equal / te, 0.94, 0.15 * 0.94);
  EXPECT_LT(equal / te, 1);
}

// NVIDIA's published step times on H100 with 80 GB.
struct StepRow {
  std::string name;
  PlannedModel model;
  Layout layout;
  std::int64_t sequence, sequences;
  double bf16, fp8;  // seconds

  Job job(const machine::MachineConstants& m) const {
    return {.sequence = sequence, .sequences = sequences, .gpus = layout.gpus(), .memory = 80e9, .machine = m};
  }
  double error(bool eight_bit, const machine::MachineConstants& m) const {
    return step_time(model, layout, job(m), megatron_core(eight_bit)).total() / (eight_bit ? fp8 : bf16) - 1;
  }
};

models::ModelShape grouped(std::int64_t layers, std::int64_t width, std::int64_t hidden, std::int64_t heads, std::int64_t kv,
                           std::int64_t vocabulary) {
  return {.family = "llama",
          .width = width,
          .layers = layers,
          .heads = heads,
          .kv_heads = kv,
          .head_dim = width / heads,
          .hidden = hidden,
          .vocabulary = vocabulary,
          .max_sequence = 8192};
}

const std::vector<StepRow>& step_rows() {
  static const std::vector<StepRow> rows = [] {
    PlannedModel nemotron = planned_model(grouped(32, 6144, 24576, 48, 8, 256000));
    nemotron.gated = false;
    return std::vector<StepRow>{{"Llama 3 8B",
                                 planned_model(grouped(32, 4096, 14336, 32, 8, 128256)),
                                 {.context = 2, .data = 4, .zero = 1},
                                 8192,
                                 128,
                                 12.78,
                                 9.44},
                                {"Llama 3.1 405B",
                                 model_named("llama-3-405b"),
                                 {.tensor = 8, .pipeline = 9, .context = 2, .data = 4, .schedule = interleaved, .chunks = 7, .zero = 1},
                                 8192,
                                 252,
                                 17.50,
                                 11.00},
                                {"Nemotron-4 15B", nemotron, {.tensor = 4, .data = 4, .zero = 1, .micro_batch = 4}, 4096, 64, 2.812, 2.039},
                                {"GPT-3 175B",
                                 model_named("gpt-3-175b"),
                                 {.tensor = 4, .pipeline = 8, .data = 4, .schedule = interleaved, .chunks = 12, .zero = 1},
                                 2048,
                                 256,
                                 8.309,
                                 5.626}};
  }();
  return rows;
}

// All eight are in-sample: the constants of "h100" were chosen on them and on two more models.
TEST(Published, StepTimesOnH100AreWithin15PercentWithOneSetOfConstants) {
  const auto h100 = machine::machine_constants("h100");
  for (const StepRow& row : step_rows())
    for (const bool eight_bit : {false, true}) {
      const double error = row.error(eight_bit, h100);
      std::printf("%-16s %s %6.2f s %+5.1f%%\n", row.name.c_str(), eight_bit ? "FP8 " : "BF16", eight_bit ? row.fp8 : row.bf16,
                  100 * error);
      EXPECT_LE(std::abs(error), 0.15) << row.name;
    }
}

// The two rates of GEMMs with the least sum of squared errors on some rows.
machine::MachineConstants fitted(const std::vector<StepRow>& rows) {
  machine::MachineConstants best = machine::machine_constants("h100"), c = best;
  double least = 1e300;
  for (c.gemm_tflops = 580; c.gemm_tflops <= 760; c.gemm_tflops += 5)
    for (c.eight_bit_gain = 1.5; c.eight_bit_gain <= 2.01; c.eight_bit_gain += 0.01) {
      double sum = 0;
      for (const StepRow& row : rows)
        for (const bool eight_bit : {false, true}) sum += std::pow(row.error(eight_bit, c), 2);
      if (sum < least) least = sum, best = c;
    }
  return best;
}

TEST(Published, AModelWhoseRowsAreLeftOutOfTheFitIsPredictedWithin15Percent) {
  for (std::size_t out = 0; out < step_rows().size(); ++out) {
    std::vector<StepRow> others = step_rows();
    others.erase(others.begin() + std::ptrdiff_t(out));
    const StepRow& row = step_rows()[out];
    const auto c = fitted(others);
    std::printf("without %-16s %3.0f TFLOP/s x %.2f: BF16 %+5.1f%%, FP8 %+5.1f%%\n", row.name.c_str(), c.gemm_tflops, c.eight_bit_gain,
                100 * row.error(false, c), 100 * row.error(true, c));
    for (const bool eight_bit : {false, true}) EXPECT_LE(std::abs(row.error(eight_bit, c)), 0.15) << row.name;
  }
}

// Not used by any fit: Megatron Bridge 25.11 with FSDP, and NeMo 24.12, in FP8 on 8 H100.
TEST(Published, RatesOfPublicationsThatNoConstantWasFittedToAreWithinAFifth) {
  struct Row {
    const char* name;
    PlannedModel model;
    Layout layout;
    std::int64_t sequence;
    double rate;  // tokens per second and GPU
  };
  const Row rows[] = {
      {"Llama 3 8B, FSDP", planned_model(grouped(32, 4096, 14336, 32, 8, 128256)), {.data = 8, .zero = 3, .eight_bit = true}, 8192, 14451},
      {"Llama 2 7B", planned_model(grouped(32, 4096, 11008, 32, 32, 32000)), {.data = 8, .zero = 1, .eight_bit = true}, 4096, 16934}};
  for (const Row& row : rows) {
    const Job job = job_of(row.sequence, 128, 8);
    const double rate = token_rate(step_time(row.model, row.layout, job, megatron_core(true)), job);
    std::printf("%-18s %6.0f tokens/s per GPU, predicted %6.0f, %+5.1f%%\n", row.name, row.rate, rate, 100 * (rate / row.rate - 1));
    EXPECT_NEAR(rate, row.rate, 0.2 * row.rate) << row.name;
  }
}

// The encodings of activations under the recipes of the rows below.
struct Encoding {
  const char* name;
  bool eight_bit;
  ops::QuantizeSpec spec;
};
ops::QuantizeSpec encoded(ScaleBlock block, bool known) {
  static float scale = 1;
  ops::QuantizeSpec s{.format = DType::e4m3, .rows = block, .cols = block};
  if (known) s.scale = {&scale, {1}, DType::f32};
  return s;
}
const Encoding bf16{"BF16", false, {}}, known_scale{"delayed", true, encoded({}, true)}, own_scale{"current", true, encoded({}, false)},
    blocks{"block128", true, encoded({1, 128}, false)};

// Octet on H200, sequence 4096, 8 micro-batches per step: commits 47a5539 and 25b9670. The factors of the encodings and the time per
// written byte were fitted to them and to NVIDIA's rows.
struct OwnRow {
  const char* size;
  Encoding encoding;
  std::int64_t micro_batch;
  Layout layout;
  double rate;  // tokens per second and GPU
  std::int64_t micro_batches = 8;

  double predicted() const {
    const PlannedModel model = planned_model(models::model_size(size));
    Layout l = layout;
    l.micro_batch = micro_batch, l.eight_bit = encoding.eight_bit;
    Job job = job_of(4096, micro_batches * micro_batch * l.data, l.gpus());
    job.even_stages = false;  // stages are divided by their costs
    job.machine = machine::machine_constants("h200");
    Software program = octet_software(optim::storage_of(optim::Level::O0), l.zero, l.eight_bit);
    program.sent_gradient = 2;  // BF16 states
    add_encoding(program, encoding.spec);
    return token_rate(step_time(model, l, job, program), job);
  }
};

void expect_within_a_tenth(std::span<const OwnRow> rows) {
  for (const OwnRow& row : rows) {
    const double error = row.predicted() / row.rate - 1;
    std::printf("%-13s %-8s %-28s %7.0f tokens/s per GPU, %+5.1f%%\n", row.size, row.encoding.name, to_text(row.layout).c_str(), row.rate,
                100 * error);
    EXPECT_LE(std::abs(error), 0.1) << row.size << " " << row.encoding.name;
  }
}

TEST(Published, OctetsOwnRatesAreWithinATenthForEveryRecipeAndDivision) {
  const OwnRow rows[] = {{"qwen2.5-0.5b", bf16, 4, {}, 140.3e3},
                         {"qwen2.5-0.5b", known_scale, 4, {}, 168.8e3},
                         {"qwen2.5-0.5b", own_scale, 4, {}, 157.7e3},
                         {"qwen2.5-0.5b", blocks, 4, {}, 152.2e3},
                         {"qwen2.5-1.5b", bf16, 4, {}, 54.4e3},
                         {"qwen2.5-1.5b", own_scale, 4, {}, 68.6e3},
                         {"qwen2.5-1.5b", blocks, 4, {}, 64.7e3},
                         {"qwen2.5-7b", bf16, 2, {}, 13.6e3},
                         {"qwen2.5-7b", own_scale, 2, {}, 19.9e3},
                         {"qwen2.5-7b", blocks, 2, {}, 18.0e3},
                         {"qwen2.5-0.5b", known_scale, 4, {.data = 2, .zero = 1}, 167.7e3},
                         {"qwen2.5-0.5b", own_scale, 4, {.data = 2, .zero = 1}, 156.9e3},
                         {"qwen2.5-0.5b", blocks, 4, {.data = 2, .zero = 1}, 151.8e3},
                         {"qwen2.5-0.5b", bf16, 4, {.data = 2, .zero = 1}, 137.8e3},
                         {"qwen2.5-7b", known_scale, 2, {.data = 2, .zero = 1}, 20.23e3},
                         {"qwen2.5-7b", known_scale, 2, {.data = 2, .zero = 3}, 19.26e3},
                         {"qwen2.5-7b", known_scale, 2, {.tensor = 2}, 17.67e3}};
  expect_within_a_tenth(rows);
}

// Commit 6add328, one run on 2 x H200: 8 micro-batches per rank, 16 where both ranks compute all of them.
TEST(Published, LayoutsOnTwoGpusAreInTheirMeasuredOrder) {
  const auto of = [](const char* size, std::int64_t micro_batch, Layout l, double rate) {
    return OwnRow{size, known_scale, micro_batch, l, rate, l.data == 1 ? 16 : 8};
  };
  const OwnRow seven[] = {of("qwen2.5-7b", 2, {.data = 2, .zero = 1}, 20.64e3), of("qwen2.5-7b", 2, {.data = 2}, 20.61e3),
                          of("qwen2.5-7b", 2, {.data = 2, .zero = 2}, 20.19e3), of("qwen2.5-7b", 2, {.data = 2, .zero = 3}, 19.57e3),
                          of("qwen2.5-7b", 2, {.pipeline = 2}, 19.42e3),        of("qwen2.5-7b", 2, {.tensor = 2}, 17.90e3)};
  const OwnRow fourteen[] = {of("qwen2.5-14b", 1, {.data = 2, .zero = 1}, 10.05e3), of("qwen2.5-14b", 1, {.pipeline = 2}, 9.62e3),
                             of("qwen2.5-14b", 1, {.data = 2, .zero = 3}, 9.24e3), of("qwen2.5-14b", 1, {.tensor = 2}, 8.44e3)};
  for (const auto& rows : {std::span<const OwnRow>(seven), std::span<const OwnRow>(fourteen)}) {
    expect_within_a_tenth(rows);
    for (const OwnRow& a : rows)
      for (const OwnRow& b : rows)
        EXPECT_TRUE(a.rate <= 1.05 * b.rate || a.predicted() > b.predicted()) << to_text(a.layout) << " and " << to_text(b.layout);
  }
}

}  // namespace
}  // namespace octet::plan
