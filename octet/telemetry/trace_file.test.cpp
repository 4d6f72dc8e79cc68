#include "octet/telemetry/trace_file.hpp"

#include <gtest/gtest.h>

#include "octet/json/value.hpp"

namespace octet::telemetry {
namespace {

using Kind = TracedActivity::Kind;

// Two steps of 10 us with 1 us between them, in which nothing counts. Two queues overlap in the first.
StepTrace sample() {
  const std::string kernel = "void octet::cuda::(anonymous namespace)::adamw_kernel<float, 4>(Batch, float const*)";
  return {.activities = {{Kind::kernel, kernel, 1000, 4000, 0, 7},
                         {Kind::copy, "host to device", 2000, 6000, 256, 9},
                         {Kind::kernel, kernel, 8000, 11000, 0, 7},
                         {Kind::kernel, kernel, 11200, 11400, 0, 7},
                         {Kind::clear, "clear", 12000, 22000, 64, 7}},
          .steps = {{"step 4", 1000, 11000}, {"step 5", 12000, 22000}},
          .gpu = true};
}

// A rank on a CPU.
StepTrace host_sample() {
  return {.steps = {{"step 4", 1000, 11000}},
          .parts = {{"forward and backward", 1000, 7000}, {"optimizer", 7000, 11000}},
          .exchanges = {{"all_reduce (sum) of f32 [12]", 3000, 4000, 48}, {"all_reduce (sum) of f32 [3]", 5000, 7000, 12}}};
}

// Event and process of a name in a file.
const json::Value* event_named(const json::Value& root, std::string_view name, std::int64_t rank) {
  for (const json::Value& event : *root.find("traceEvents")->array())
    if (*event.find("name")->text() == name && *event.find("pid")->integer() == rank) return &event;
  return nullptr;
}

std::string text_of(const StepTrace& trace) { return trace_text(std::vector{trace_events(trace, {})}); }

TEST(StepTrace, RowsSumTimesByNameAndCountGapsOfAllQueues) {
  const auto rows = trace_rows(sample());
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].name, "clear");
  EXPECT_DOUBLE_EQ(rows[0].share, 0.5);
  EXPECT_EQ(rows[1].name, "adamw_kernel<float, 4>");
  EXPECT_EQ(rows[1].count, 2) << "what runs between steps is left out";
  EXPECT_DOUBLE_EQ(rows[1].seconds, 6e-6);
  EXPECT_EQ(rows[2].name, "copy host to device");
  EXPECT_EQ(rows[3].name, "gaps");
  EXPECT_EQ(rows[3].count, 1);
  EXPECT_DOUBLE_EQ(rows[3].seconds, 2e-6) << "from the copy's end to the second kernel";
}

TEST(StepTrace, ATraceWithoutActivitiesIsOneGap) {
  const auto rows = trace_rows({.steps = {{"step 4", 0, 5000}}, .gpu = true});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_DOUBLE_EQ(rows[0].share, 1);
}

TEST(StepTrace, ThePictureHasALineForEachQueueAndTimesSinceTheFirstStep) {
  const json::Value root = json::parse({.text = text_of(sample()), .file = "trace.json"});
  std::vector<std::string> lines;
  double end = 0, gap = -1;
  for (const json::Value& event : *root.find("traceEvents")->array()) {
    if (*event.find("name")->text() == "thread_name") lines.push_back(*event.find("args")->find("name")->text());
    if (*event.find("ph")->text() != "X") continue;
    const auto number = [&](const char* key) {
      const json::Value* v = event.find(key);
      return v->integer() != nullptr ? double(*v->integer()) : *v->real();
    };
    EXPECT_GE(number("ts"), 0);
    end = std::max(end, number("ts") + number("dur"));
    if (*event.find("cat")->text() == "gap") gap = number("ts");
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"steps", "gaps", "queue 7", "queue 9"}));
  EXPECT_DOUBLE_EQ(end, 21);
  EXPECT_DOUBLE_EQ(gap, 5);
}

TEST(StepTrace, WithoutAGpuTheRowsArePartsAndKindsOfExchanges) {
  const auto rows = trace_rows(host_sample());
  ASSERT_EQ(rows.size(), 3u) << "no gaps";
  EXPECT_EQ(rows[0].name, "forward and backward");
  EXPECT_DOUBLE_EQ(rows[0].share, 0.6);
  EXPECT_EQ(rows[2].name, "all_reduce (sum)");
  EXPECT_EQ(rows[2].count, 2);
  EXPECT_DOUBLE_EQ(rows[2].seconds, 3e-6);
}

TEST(StepTrace, EachRankIsAProcessWhoseFirstStepBeginsAtZero) {
  StepTrace late = host_sample();
  for (auto* spans : {&late.steps, &late.parts})
    for (TracedSpan& s : *spans) s.begin += 700, s.end += 700;
  for (TracedExchange& e : late.exchanges) e.begin += 700, e.end += 700;
  const std::string text =
      trace_text(std::vector{trace_events(host_sample(), {0, "rank 0 on a"}), trace_events(late, {1, "rank 1 on \"b\""})});
  const json::Value root = json::parse({.text = text, .file = "trace.json"});
  for (const std::int64_t rank : {0, 1}) {
    const json::Value* exchange = event_named(root, "all_reduce (sum) of f32 [12]", rank);
    ASSERT_NE(exchange, nullptr);
    EXPECT_EQ(*exchange->find("ts")->integer(), 2);
    EXPECT_EQ(*exchange->find("args")->find("sent_bytes")->integer(), 48);
    const json::Value* part = event_named(root, "optimizer", rank);
    ASSERT_NE(part, nullptr);
    EXPECT_NE(*part->find("tid")->integer(), *exchange->find("tid")->integer());
  }
  EXPECT_EQ(*event_named(root, "process_name", 1)->find("args")->find("name")->text(), "rank 1 on \"b\"");
  EXPECT_EQ(event_named(root, "gaps", 0), nullptr);
}

TEST(StepTrace, ExchangesUnderWayHaveLinesBesideThePiecesOfPasses) {
  StepTrace trace = host_sample();
  trace.pieces = {{"forward of micro-batch 1: attention", 1000, 3000}};
  trace.under_way = {{"one", 500, 4000, 8}, {"two", 1000, 5000, 8}};
  const json::Value root = json::parse({.text = trace_text(std::vector{trace_events(trace, {})}), .file = "trace.json"});
  const auto line = [&](const char* name) { return *event_named(root, name, 0)->find("tid")->integer(); };
  EXPECT_NE(line("one"), line("two")) << "at one time";
  EXPECT_NE(line("one"), line("forward of micro-batch 1: attention"));
  EXPECT_EQ(trace_rows(trace).size(), trace_rows(host_sample()).size()) << "their time is that of other rows";
}

TEST(StepTrace, TheTableIsCutAfterTheLongestRows) {
  const std::string text = trace_table(trace_rows(sample()), 1);
  EXPECT_NE(text.find("clear"), std::string::npos);
  EXPECT_EQ(text.find("gaps"), std::string::npos);
}

}  // namespace
}  // namespace octet::telemetry
