#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "octet/base/clock.hpp"
#include "octet/telemetry/event_line.hpp"
#include "octet/telemetry/sample_run.test.hpp"
#include "octet/watch/answers.hpp"
#include "tests/testing/scratch.hpp"

// A run of many steps and 300 tensors, whose file must be larger than those that are read at once. OCTET_WATCH_STEPS=1000000 is the full
// size: it writes about 8 GB into the folder for temporary files, and takes minutes.

namespace octet::watch {
namespace {

using namespace telemetry;

constexpr std::size_t tensors = 300;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double most_seconds = 60, most_bytes = 4e9;  // a sanitizer's program is another program
#else
constexpr double most_seconds = 2, most_bytes = 300 << 20;
#endif
constexpr std::int64_t usual_steps = 7000, outlier_step = 4711;

std::int64_t steps() {
  const char* given = std::getenv("OCTET_WATCH_STEPS");
  return given ? std::atoll(given) : usual_steps;
}

// The line of a step that has the form of `line`, an event of step 0.
std::string at_step(const std::string& line, std::int64_t step) {
  const std::string zero = "\"step\":0,";
  std::string out = line;
  return out.replace(out.find(zero), zero.size(), format("\"step\":{},", step));
}

void write_long_run(const std::string& folder) {
  RunFacts facts = testing::sample_facts(testing::sample_recipes()[1], 1, {.layers = 4});
  facts.quantizers.clear();
  for (std::size_t i = 0; i < tensors; ++i)
    facts.quantizers.push_back({format("layers.{}.mlp", i / 3), i % 3 == 0 ? "x" : i % 3 == 1 ? "w" : "dy", "e4m3", "tensor"});
  write_run_facts(folder + "/run.json", facts);
  std::vector<std::string> scales, health, step_lines;
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    const auto noise = testing::gaussian(tensors, seed);
    ScalesEvent s{.amax = noise, .scale_min = noise, .scale_max = noise};
    HealthEvent h{
        .headroom_bits = noise, .saturated = noise, .flushed = noise, .sqnr_db = noise, .nonfinite = std::vector<std::int64_t>(tensors)};
    scales.push_back(event_line(s)), health.push_back(event_line(h)),
        step_lines.push_back(event_line(StepEvent{.loss = 3 + double(noise[0]), .grad_norm = double(noise[1])}));
  }
  std::ofstream out(folder + "/metrics.jsonl", std::ios::binary);
  for (std::int64_t step = 1; step <= steps(); ++step) {
    const std::size_t kind = std::size_t(step) % 16;
    out << (step == outlier_step ? event_line(StepEvent{.step = step, .loss = 77}) : at_step(step_lines[kind], step)) << '\n'
        << at_step(scales[kind], step) << '\n';
    if (step % 10 == 0) out << at_step(health[kind], step) << '\n';
  }
}

double resident_bytes() {
  double pages = 0, skip = 0;
  std::ifstream("/proc/self/statm") >> skip >> pages;
  return pages * double(::sysconf(_SC_PAGESIZE));
}

TEST(LongRuns, OpenAtOnceWithSamplesAndHaveEveryExtremeWhenTheyAreRead) {
  const testing::Scratch scratch;
  write_long_run(scratch.folder());
  const double before = resident_bytes(), begin = monotonic_seconds();
  Runs runs({scratch.folder()});
  const WatchedRun& run = runs.loaded(0);
  const std::string series = series_answer(run, {}).dump(), heat = heat_answer(run, {}).dump();
  const double opened = monotonic_seconds() - begin;
  EXPECT_FALSE(run.complete());
  EXPECT_LT(opened, most_seconds);
  EXPECT_EQ(run.glance().step->step, steps());
  const auto& sampled = run.history().curves().find("loss")->second.all();
  EXPECT_GT(sampled.size(), 300u);
  EXPECT_LT(double(sampled.front().first), 0.01 * double(steps()));
  EXPECT_GT(double(sampled.back().last), 0.99 * double(steps()));
  while (runs.read(64 << 20)) continue;
  const double all = monotonic_seconds() - begin;
  ASSERT_TRUE(run.complete());
  EXPECT_EQ(run.problem(), "");
  const auto& loss = run.history().curves().find("loss")->second;
  float most = 0;
  std::int64_t count = 0;
  for (const CurvePoint& p : loss.all()) most = std::max(most, p.range.high), count += p.count;
  EXPECT_EQ(most, 77);
  EXPECT_EQ(count, steps());
  EXPECT_LT(resident_bytes() - before, most_bytes);
  std::printf("%lld steps, %.2f GB: opened in %.2f s, every event read in %.1f s, %.0f MiB; answers of %zu and %zu KiB\n",
              (long long)(steps()), double(std::filesystem::file_size(scratch.at("metrics.jsonl"))) * 1e-9, opened, all,
              (resident_bytes() - before) / (1 << 20), series.size() >> 10, heat.size() >> 10);
}

}  // namespace
}  // namespace octet::watch
