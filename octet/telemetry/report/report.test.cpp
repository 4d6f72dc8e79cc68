#include "octet/telemetry/report/report.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "octet/base/error.hpp"
#include "octet/json/value.hpp"
#include "octet/telemetry/report/well_formed.test.hpp"
#include "octet/telemetry/sample_run.test.hpp"
#include "octet/telemetry/throttling.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::telemetry {
namespace {

const testing::SampleSize small{.layers = 4, .steps = 60, .health_every = 5, .eval_every = 20};

/// OCTET_REPORT=file.html keeps the sample, to be looked at.
std::string sample_report(int seeds, const testing::SampleSize& size) {
  const auto runs = testing::sample_runs(seeds, size);
  const Comparison comparison = compare_runs(runs, "bf16", 0.005);
  if (const char* path = std::getenv("OCTET_REPORT")) write_report(path, runs, &comparison);
  return report_html(runs, &comparison);
}

/// The page without its doctype, <head> (whose style sheet is not markup) and what follows </html>.
std::string body_of(const std::string& html) {
  const auto from = html.find("<body>"), to = html.find("</html>");
  return html.substr(from, to - from);
}

TEST(Report, HasEverySectionOfAComparison) {
  const std::string html = sample_report(2, {});
  for (const char* part : {"<title>Octet report",
                           "6 arms beside bf16",
                           "are not resolved against 0.50% of bf16",
                           "A twin of bf16, whose first weights differ in their last bit",
                           "bf16 twin 1",
                           "Grey band: noise, from twins of bf16",
                           "Summary",
                           "Gap to bf16",
                           "Gradient cosine",
                           "Loss",
                           "Difference from bf16",
                           "Gradient norm",
                           "Learning rate",
                           "Throughput",
                           "Peak memory",
                           "weights for GEMMs",
                           "FP8 health",
                           "Headroom [bits]: current",
                           "Parameter norm",
                           "Saturated [%]",
                           "Flushed to zero [%]",
                           "layers.3.mlp.down.dy",
                           "Scale factors: mxfp8",
                           "Incidents",
                           "amax of the gradient is not finite",
                           "Alerts",
                           "grad_norm_spike",
                           "Look at the batch &lt;&amp;&gt;",
                           "Plan: layer, precision, reason",
                           "kept by keep.lm_head = true",
                           "softmax, norms, loss, reductions",
                           "Machine and configuration",
                           "AMD EPYC 9B14",
                           "optim.betas",
                           "prefers-color-scheme:dark",
                           "@media print"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
}

TEST(Report, BlocksHaveMapsWhereTheRecordHasThem) {
  auto runs = testing::sample_runs(1, small);
  const auto has_maps = [&] {
    const std::string html = report_html(runs, nullptr);
    return std::pair(testing::has(html, "Spread of block scales [octaves]"), testing::has(html, "Blocks with lost values [%]"));
  };
  EXPECT_EQ(has_maps(), std::pair(false, false)) << "scales per tensor";
  for (RunRecord& run : runs)
    for (HealthEvent& e : run.health) e.scale_deviation.assign(run.facts.quantizers.size(), 1.5f);
  EXPECT_EQ(has_maps(), std::pair(true, false)) << "scales per row";
  for (RunRecord& run : runs)
    for (HealthEvent& e : run.health) e.lossy_blocks.assign(run.facts.quantizers.size(), 0.25f);
  EXPECT_EQ(has_maps(), std::pair(true, true));
}

TEST(Report, ShowsRanksAsPlannedAndAsCounted) {
  auto runs = testing::sample_runs(1, small);
  EXPECT_FALSE(testing::has(report_html(std::span(runs).first(1), nullptr), "<h2>Ranks</h2>")) << "one rank has none";
  RunRecord& run = runs[1];
  run.facts.ranks = {.wanted = 2, .started = 2, .here = 2, .backend = "threads", .gradients = "e4m3"};
  run.facts.ranks.planned = {.gemm_flops = 100, .fp8_flops = 80, .collectives = 3, .sent_bytes = 2048};
  run.facts.ranks.ran = {.gemm_flops = 100, .fp8_flops = 75, .collectives = 3, .sent_bytes = 1024};
  run.ranks = {{.step = 1, .seconds = {1, 1}, .waited = {0.5f, 0.25f}, .slowest = 1, .sent_bytes = 1024},
               {.step = 5, .seconds = {1, 1}, .waited = {0.5f, 0.25f}, .slowest = 1, .sent_bytes = 1024}};
  const std::string html = report_html(std::span(runs).subspan(1, 1), nullptr);
  for (const char* part : {"<h2>Ranks</h2>", "2 over threads", "2.00 KiB; 1.00 KiB", "80.0 %; 75.0 %", "37.5 %", "rank 1 in 2 of 2 steps",
                           "Time in collectives"})
    EXPECT_TRUE(testing::has(html, part)) << part;
  EXPECT_EQ(report::WellFormed::fault(body_of(html)), "");
}

TEST(Report, ShowsGpusOfRunsThatKnowThemAndTheSqnrBelowRounding) {
  auto runs = testing::sample_runs(1, small);
  EXPECT_FALSE(testing::has(report_html(std::span(runs).first(1), nullptr), ">GPUs</h3>"));
  for (const std::int64_t step : {1, 5})
    runs[1].gpus.push_back({.step = step,
                            .utilization = {0.5f, NAN},
                            .power = {600, 500},
                            .temperature = {NAN, NAN},
                            .sm_clock = {1755, 1980},
                            .memory_used = {5e10f, 5e10f},
                            .throttling = {heat, power_cap}});
  const std::string html = report_html(std::span(runs).subspan(1, 1), nullptr);
  for (const char* part : {">GPUs</h3>", "GPU utilization", "GPU power", "GPU clock", "Throttled GPUs", "SQNR below rounding [dB]"})
    EXPECT_TRUE(testing::has(html, part)) << part;
  EXPECT_FALSE(testing::has(html, "GPU temperature")) << "it is not known";
  EXPECT_EQ(report::WellFormed::fault(body_of(html)), "");
}

TEST(Report, ShowsTheSharedScalesOfGradients) {
  auto runs = testing::sample_runs(1, small);
  RunRecord& run = runs[1];
  run.facts.ranks = {.wanted = 2, .started = 2, .here = 2, .backend = "threads", .gradients = "e4m3_shared"};
  EXPECT_FALSE(testing::has(report_html(std::span(runs).subspan(1, 1), nullptr), "shared scale per tensor"));
  run.facts.ranks.shared_scales = {"layers.0.up", "layers.1.up"};
  run.shared_scales = {{.step = 1, .mu = {1, 0.5f}, .overflow = {0.25f, 0}, .underflow = {0, 0}},
                       {.step = 5, .mu = {0.125f, 1}, .overflow = {0, NAN}, .underflow = {0, 0}}};
  const std::string html = report_html(std::span(runs).subspan(1, 1), nullptr);
  for (const char* part : {"2 tensors", "0.125 in layers.0.up", "25 % in layers.0.up", ">none<", "Factor mu", "Overflow", "Underflow"})
    EXPECT_TRUE(testing::has(html, part)) << part;
  EXPECT_EQ(report::WellFormed::fault(body_of(html)), "");
  run.shared_scales[0].mu.pop_back();
  EXPECT_THROW(report_html(std::span(runs).subspan(1, 1), nullptr), ContractError);
}

TEST(Report, LoadsNothingAndRunsNothing) {
  const std::string html = sample_report(1, small);
  for (const char* part :
       {"<script", "javascript:", "src=", "@import", "url(", "https:", "<link", "<img", "<iframe", "<object", "onload", "<form"})
    EXPECT_EQ(html.find(part), std::string::npos) << part;
  // The namespace of SVG is a name, not an address that is fetched, and links are opened by a reader; nothing else may look like an
  // address.
  const std::string link = "<a href=\"http://127.0.0.1:6160/#identity=", told = "its page at http://127.0.0.1:6160/, while";
  std::size_t names = 0, links = 0;
  for (auto at = html.find("http:"); at != html.npos; at = html.find("http:", at + 1)) {
    if (html.compare(at - 9, link.size(), link) == 0 && ++links > 0) continue;
    if (html.compare(at - 12, told.size(), told) == 0) continue;
    EXPECT_EQ(html.substr(at, 26), "http://www.w3.org/2000/svg");
    ++names;
  }
  EXPECT_GT(names, 0u);
  EXPECT_GT(links, 0u);
}

TEST(Report, IsWellFormedAndSoIsEverySvg) {
  const std::string html = sample_report(2, small);
  EXPECT_EQ(report::WellFormed::fault(body_of(html)), "");
  std::size_t charts = 0;
  for (auto at = html.find("<svg xmlns"); at != html.npos; at = html.find("<svg xmlns", at + 1)) {
    // Nested <svg> have no xmlns: the outer one ends where as many have closed as opened.
    std::size_t depth = 0, end = at;
    do {
      const auto open = html.find("<svg", end), close = html.find("</svg>", end);
      if (open < close) ++depth, end = open + 4;
      else --depth, end = close + 6;
    } while (depth > 0);
    const std::string svg = html.substr(at, end - at);
    ASSERT_EQ(report::WellFormed::fault(svg), "");
    if (svg.find("role=\"img\"") == svg.npos) continue;
    ++charts;
    EXPECT_NE(svg.find("<title id="), svg.npos);
    EXPECT_NE(svg.find("<desc id="), svg.npos);
  }
  EXPECT_GT(charts, 20u);
}

TEST(Report, LinksIncidentsAndAlertsToTheirPagesOfOctetWatch) {
  auto run = testing::sample_run(testing::sample_recipes()[1], 1, small);
  run.facts.name = "a&b", run.facts.started = "2026-01-31T12:00:00Z";
  run.incidents = {{.step = 9, .kind = "skipped"}};
  run.alerts = {{.step = 7, .rule = "sqnr", .severity = Severity::critical}};
  const std::string page = "#identity=a%26b%202026-01-31T12%3A00%3A00Z&amp;view=Incidents&amp;step=";
  const std::string html = report_html(std::span(&run, 1), nullptr, "http://node:7/");
  EXPECT_TRUE(testing::has(html, "<a href=\"http://node:7/" + page + "9&amp;kind=skipped\">step 9</a>"));
  EXPECT_TRUE(testing::has(html, "<a href=\"http://node:7/" + page + "7&amp;kind=critical%20sqnr\">7</a>"));
  EXPECT_EQ(report::WellFormed::fault(body_of(html)), "");
  EXPECT_FALSE(testing::has(report_html(std::span(&run, 1), nullptr, ""), "<a "));
}

TEST(Report, ShowsSamplesOfTextAsText) {
  auto run = testing::sample_run(testing::sample_recipes()[1], 1, small);
  EXPECT_FALSE(testing::has(report_html(std::span(&run, 1)), "Samples of text"));
  for (int i = 1; i <= 20; ++i)
    run.samples.push_back({.step = 3 * i, .prompt = "<b>once", .text = format("\nupon {}", i), .tokens = 4, .end = "end of text"});
  const std::string html = report_html(std::span(&run, 1));
  EXPECT_TRUE(testing::has(html, "<h4>Step 60, 4 tokens, end of text</h4>"));
  EXPECT_TRUE(testing::has(html, "&lt;b&gt;once</span>\nupon 1<") && testing::has(html, "\nupon 20<") && !testing::has(html, "<b>once"));
  EXPECT_EQ(report::WellFormed::fault(body_of(html)), "");
}

TEST(Report, APictureHasLossGradientNormAndHeadroomInLittleText) {
  auto run = testing::sample_run(testing::sample_recipes()[1], 1, {});
  run.alerts = {{.step = 7, .rule = "sqnr"}};
  const std::string svg = report_svg(std::span(&run, 1));
  EXPECT_EQ(report::WellFormed::fault(svg), "");
  EXPECT_EQ(svg.find("<div"), std::string::npos) << "SVG only";
  for (const char* part : {"Loss: delayed", "Gradient norm", "Headroom [bits]: delayed", ">alerts<", "layers.3"})
    EXPECT_TRUE(testing::has(svg, part)) << part;
  EXPECT_LT(svg.size(), 60000u);
  const auto bf16 = testing::sample_run(testing::sample_recipes()[0], 1, small);
  EXPECT_FALSE(testing::has(report_svg(std::span(&bf16, 1)), "Headroom"));
}

TEST(Report, APictureOfAComparisonHasLossAndDifferenceWithTheTwinsBand) {
  const auto runs = testing::sample_runs(1, small);
  const Comparison comparison = compare_runs(runs, "bf16", 0.005);
  const std::string svg = report_svg(runs, &comparison);
  EXPECT_EQ(report::WellFormed::fault(svg), "");
  for (const char* part : {">Loss<", ">Difference from bf16<", "class=\"shade\"", ">twin<"}) EXPECT_TRUE(testing::has(svg, part)) << part;
  EXPECT_FALSE(testing::has(svg, "Headroom"));
}

TEST(Report, HasBalanceAndLoadsOfExperts) {
  auto run = testing::sample_run(testing::sample_recipes()[1], 1, small);
  EXPECT_FALSE(testing::has(report_html(std::span(&run, 1)), "<h2>Experts</h2>"));
  run.experts = {{.step = 1, .experts = 4, .layers = {1, 3}, .counts = {5, 5, 5, 5, 5, 5, 5, 5}},
                 {.step = 9, .experts = 4, .layers = {1, 3}, .counts = {5, 5, 5, 5, 20, 0, 0, 0}}};
  const std::string html = report_html(std::span(&run, 1));
  EXPECT_EQ(report::WellFormed::fault(body_of(html)), "");
  for (const char* part : {"<h2>Experts</h2>", "Loads at step 9: delayed", "<title>layers.3: 0 to 4</title>",
                           "<title>layers.1: 1 to 1</title>", "4.00 in layers.3, expert 0", "3 of 8", ">2.50<", ">0.000<"})
    EXPECT_TRUE(testing::has(html, part)) << part;
}

TEST(Report, HasTheLastLoadsOfArmsSideBySide) {
  std::vector<RunRecord> runs;
  for (const int seed : {1, 2})
    for (const std::size_t recipe : {0, 1}) {
      RunRecord run = testing::sample_run(testing::sample_recipes()[recipe], std::uint64_t(seed), small);
      run.experts = {{.step = 9, .experts = 4, .layers = {1}, .counts = {5, 5, 5, 5}}};
      if (recipe == 1 && seed == 2) run.experts.back().counts = {14, 3, 3, 0};
      runs.push_back(std::move(run));
    }
  const Comparison comparison = compare_runs(runs, "bf16", 0.005);
  const std::string html = report_html(runs, &comparison);
  EXPECT_EQ(report::WellFormed::fault(body_of(html)), "");
  for (const char* part : {"1.00 in layers.1, expert 0", "0 of 8", "2.80 in layers.1, expert 0", "1 of 8", ">1.90<"})
    EXPECT_TRUE(testing::has(html, part)) << part;
}

TEST(Report, ShowsHostileTextsAsTexts) {
  const std::string evil = "</title><img src=x onerror=alert(1)>\"'&<script>\x1b[2J\xff";
  auto run = testing::sample_run(testing::sample_recipes()[1], 1, small);
  run.facts.name = run.facts.recipe = run.facts.model.family = run.facts.machine.cpu = run.facts.started = evil;
  run.facts.plan[0] = {evil, evil, evil, {}};
  for (auto& q : run.facts.quantizers) q.path = q.operand = q.format = q.block = evil;
  run.facts.memory.categories[0].name = evil;
  run.incidents.push_back({1, 0, evil, evil, evil});
  run.recoveries.push_back({.step = 1, .rung = evil, .result = evil, .rule = evil, .path = evil, .back_to = 0, .text = evil});
  run.facts.config_json = json::Value(json::Object{{evil, evil}}).dump(json::Layout::line, json::Invalid::replace);
  const std::vector<RunRecord> runs{run};
  const Comparison comparison = compare_runs(runs, evil, 0.005);
  for (const Comparison* c : {static_cast<const Comparison*>(nullptr), &comparison}) {
    const std::string html = report_html(runs, c);
    EXPECT_NE(html.find("has some steps twice"), std::string::npos);
    EXPECT_EQ(html.find("<img"), std::string::npos);
    EXPECT_EQ(html.find("<script"), std::string::npos);
    EXPECT_EQ(html.find('\x1b'), std::string::npos);
    EXPECT_EQ(html.find('\xff'), std::string::npos);
    EXPECT_EQ(report::WellFormed::fault(body_of(html)), "");
    EXPECT_NE(html.find("&lt;/title&gt;&lt;img src=x onerror=alert(1)&gt;"), std::string::npos);
  }
}

TEST(Report, ItsHeadlineCountsAlerts) {
  std::vector<RunRecord> runs{testing::sample_run(testing::sample_recipes()[1], 1, small)};
  const auto headline = [&] {
    const std::string html = report_html(runs), begin = "class=\"verdict\">";
    const std::size_t at = html.find(begin);
    return at == html.npos ? "" : html.substr(at + begin.size(), html.find("</p>", at) - at - begin.size());
  };
  EXPECT_TRUE(headline().starts_with("Finished after 60 steps with") && headline().find("alert") == std::string::npos) << headline();
  runs[0].alerts = {{.step = 9, .rule = "loss_spike"}, {.step = 12, .rule = "divergence", .severity = Severity::critical}};
  EXPECT_TRUE(headline().ends_with(". 2 alerts, 1 of them critical; the first is loss_spike in step 9.")) << headline();
  runs[0].alerts_left_out = 1000;
  EXPECT_NE(headline().find(" 1,002 alerts, "), std::string::npos) << headline();
  runs.push_back(testing::sample_run(testing::sample_recipes()[0], 1, small));
  EXPECT_EQ(headline(), "1,002 alerts in " + runs[0].facts.name + ".");
}

TEST(Report, CopesWithRunsThatHoldLittleOrNonsense) {
  std::vector<RunRecord> runs(1);
  EXPECT_EQ(report::WellFormed::fault(body_of(report_html(runs))), "");
  EXPECT_NE(report_html({}).find("No runs"), std::string::npos);

  runs[0] = testing::sample_run(testing::sample_recipes()[1], 1, small);
  runs[0].end.reset();
  runs[0].facts.state = RunState::running;
  EXPECT_NE(report_html(runs).find("Unfinished (running, or killed) after 60 steps"), std::string::npos);

  const double odd[] = {NAN, INFINITY, -INFINITY, 1e308, -1e308, 0, -1, 5e-324};
  for (const double x : odd) {
    for (auto& e : runs[0].steps) e.loss = e.grad_norm = e.learning_rate = e.tokens_per_second = e.limit_share = e.time = x;
    for (auto& e : runs[0].evals) e.loss = x;
    for (auto& e : runs[0].scales) e.scale_min.assign(e.scale_min.size(), float(std::fabs(x) > 1e38 ? INFINITY : x));
    runs[0].facts.ranks = {.started = 2, .planned = {.gemm_flops = x, .fp8_flops = x, .sent_bytes = INT64_MAX}};
    runs[0].ranks = {{.step = 1, .seconds = {float(x), 1}, .waited = {1, float(x)}, .slowest = 0, .sent_bytes = INT64_MAX}};
    runs[0].facts.ranks.shared_scales = {"a"};
    runs[0].shared_scales = {{.step = 1, .mu = {float(x)}, .overflow = {float(x)}, .underflow = {float(x)}}};
    runs[0].health.back().step = std::int64_t(1) << 62;
    runs[0].facts.memory.peak = INT64_MAX;
    runs[0].facts.flops_per_step = runs[0].facts.machine.gemm_limit_flops = x;
    const Comparison comparison = compare_runs(runs, "delayed", x);
    EXPECT_EQ(report::WellFormed::fault(body_of(report_html(runs, &comparison))), "");
    EXPECT_EQ(report::WellFormed::fault(body_of(report_html(runs))), "");
  }
}

/// The part of a page from a chart's title to the end of its figure.
std::string figure_of(const std::string& html, const std::string& title) {
  const auto from = html.find("<h3>" + title);
  return from == html.npos ? "" : html.substr(from, html.find("</figure>", from) - from);
}

TEST(Report, LabelsRunsOfDifferentModelLengthOrRateEach) {
  std::vector<RunRecord> runs{testing::sample_run(testing::sample_recipes()[0], 1, small),
                              testing::sample_run(testing::sample_recipes()[1], 1, small)};
  const std::string alike = report_html(runs);
  EXPECT_NE(alike.find("<dd>60 steps, 123 k tokens per run</dd>"), std::string::npos);
  EXPECT_NE(figure_of(alike, "Learning rate").find("the same in every run"), std::string::npos);
  runs[1].facts.model.width = 640, runs[1].facts.model.size = "medium";
  for (StepEvent& e : runs[1].steps) e.learning_rate *= 2;
  runs[1].steps.resize(30);
  const std::string html = report_html(runs);
  for (const char* part :
       {"<dd>bf16-1: llama tiny, 9.84 M parameters, 4 layers of width 320; delayed-1: llama medium, 9.84 M parameters, 4 layers of width "
        "640</dd>",
        "<dd>bf16-1: 60 steps, 123 k tokens; delayed-1: 30 steps, 61.4 k tokens per run</dd>", "<dd>bf16-1: 0.001; delayed-1: 0.002</dd>"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
  const std::string rates = figure_of(html, "Learning rate");
  EXPECT_EQ(rates.find("the same in every run"), std::string::npos);
  EXPECT_NE(rates.find("delayed-1"), std::string::npos);
}

TEST(Report, ShowsNoAlarmWhereNothingWasClipped) {
  auto run = testing::sample_run(testing::sample_recipes()[2], 1, small);
  for (HealthEvent& e : run.health)
    for (std::size_t i = 0; i < e.saturated.size(); ++i) e.headroom_bits[i] = -0.01f, e.saturated[i] = 0;
  EXPECT_EQ(report_html(std::vector{run}).find("<path class=\"hot\""), std::string::npos);
  run.health[0].saturated[0] = 1e-6f;
  EXPECT_NE(report_html(std::vector{run}).find("<path class=\"hot\""), std::string::npos);
}

TEST(Report, BlocksOfZerosDoNotFlattenTheScalesOfOthers) {
  auto run = testing::sample_run(testing::sample_recipes()[4], 1, small);
  const std::string before = figure_of(report_html(std::vector{run}), "Scale factors");
  EXPECT_NE(before.find(">20</text>"), std::string::npos);
  for (ScalesEvent& e : run.scales) e.scale_max.assign(e.scale_max.size(), 0x1p127f);
  const std::string after = figure_of(report_html(std::vector{run}), "Scale factors");
  EXPECT_NE(after.find(">20</text>"), std::string::npos);
  for (const char* far : {">80</text>", ">100</text>", ">120</text>"}) EXPECT_EQ(after.find(far), std::string::npos) << far;
}

TEST(Report, StaysLight) {
  EXPECT_LT(sample_report(2, {}).size(), std::size_t(1) << 20);
  auto run = testing::sample_run(testing::sample_recipes()[1], 1, {.layers = 34, .steps = 2000, .health_every = 10});
  EXPECT_LT(report_html(std::vector{run}).size(), std::size_t(1) << 20);
}

TEST(Report, ARecordWithMissingEntriesIsABrokenContract) {
  auto run = testing::sample_run(testing::sample_recipes()[1], 1, small);
  run.health[0].flushed.pop_back();
  EXPECT_THROW(report_html(std::vector{run}), ContractError);
}

TEST(Report, FromFilesEqualsFromMemory) {
  const testing::Scratch folder;
  const auto run = testing::sample_run(testing::sample_recipes()[6], 1, small);
  testing::write_sample(folder.folder(), run);
  EXPECT_EQ(report_html(std::vector{read_run(folder.folder())}), report_html(std::vector{run}));
  write_report(folder.at("report.html"), std::vector{run});
  EXPECT_EQ(testing::bytes_of(folder.at("report.html")), report_html(std::vector{run}));
}

}  // namespace
}  // namespace octet::telemetry
