#include <gtest/gtest.h>

#include <cmath>

#include "octet/telemetry/report/bar_chart.hpp"
#include "octet/telemetry/report/heat_map.hpp"
#include "octet/telemetry/report/line_chart.hpp"
#include "octet/telemetry/report/svg_file.hpp"
#include "octet/telemetry/report/well_formed.test.hpp"

namespace octet::telemetry::report {
namespace {

std::size_t count(const std::string& s, std::string_view part) {
  std::size_t n = 0;
  for (auto at = s.find(part); at != s.npos; at = s.find(part, at + 1)) ++n;
  return n;
}

TEST(LineChart, HasTitleAxesWithUnitsDescriptionAndAtMost600PointsALine) {
  LineChart chart{.title = "Loss <1>", .note = "n", .x_label = "step", .y_label = "loss [nats]", .unit = " %"};
  Line line{.name = "a & b"};
  for (int i = 0; i < 5000; ++i) line.points.push_back({double(i), std::cos(i)});
  chart.lines = {line};
  chart.x = {.low = 0, .high = 5000}, chart.y = linear_axis(-1, 1);
  Markup m;
  draw(m, chart);
  EXPECT_EQ(WellFormed::fault(m.text()), "");
  for (const char* part : {"<title id=", "<desc id=", "Loss &lt;1&gt;", "a &amp; b", "step", "loss [nats]", "0.5 %", "role=\"img\""})
    EXPECT_NE(m.text().find(part), std::string::npos) << part;
  const std::string start = "class=\"line s0\" d=\"";
  const auto path = m.text().find(start);
  ASSERT_NE(path, std::string::npos);
  EXPECT_EQ(count(m.text().substr(path + start.size(), m.text().find('"', path + start.size()) - path - start.size()), "L"), 599u);
}

TEST(LineChart, ValuesThatAreNotFiniteOrFarOutsideStayNumbers) {
  LineChart chart{.title = "t", .note = "", .x_label = "x", .y_label = "y"};
  chart.lines = {
      {.name = "l", .points = {{0, 1}, {1, 1e308}, {2, NAN}, {3, -1e308}, {4, INFINITY}}, .marks = {{1, NAN}, {2, 1e308}, {3, 0.5}}}};
  Markup m;
  draw(m, chart);
  EXPECT_EQ(WellFormed::fault(m.text()), "");
  EXPECT_EQ(m.text().find("nan"), std::string::npos);
  EXPECT_EQ(m.text().find("inf"), std::string::npos);
}

TEST(LineChart, AFileOfItsOwnHasEveryLineWithItsNameAndColour) {
  LineChart chart{.title = "Sums <2>", .note = "n & m", .x_label = "bytes", .y_label = "GB/s"};
  chart.lines = {{.name = "f32", .style = 1, .points = {{1, 1}, {2, 4}}, .marks = {{2, 4}}},
                 {.name = "e4m3", .style = 2, .points = {{1, 2}, {2, 3}}}};
  chart.x = linear_axis(1, 2), chart.y = linear_axis(1, 4);
  const BarChart bars{.title = "Parts", .note = "", .unit = "ms", .bars = {{"a", "3 ms", {{"compute", "m0", 2}, {"update", "m1", 1}}}}};
  const std::string text = svg_file({chart, bars});
  EXPECT_EQ(WellFormed::fault(text), "");
  EXPECT_EQ(count(text, ">compute</"), 2u) << "in the legend and as the bar's title";
  EXPECT_EQ(text.find("<div"), std::string::npos) << "SVG only";
  for (const char* part :
       {"Sums &lt;2&gt;", "n &amp; m", "bytes", "GB/s", ">f32</text>", ">e4m3</text>", "class=\"line s2\" d=\"", "--s2:"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
}

TEST(BarChart, BarsAreSharesOfTheLongest) {
  BarChart chart{.title = "t",
                 .note = "n",
                 .unit = "u",
                 .bars = {{"a", "4", {{"p", "m0", 3}, {"q", "m1", 1}}}, {"b", "2", {{"p", "m0", 2}}}, {"c", "?", {{"p", "m0", NAN}}}}};
  Markup m;
  draw(m, chart);
  EXPECT_EQ(WellFormed::fault(m.text()), "");
  EXPECT_NE(m.text().find("x=\"75%\" width=\"25%\""), std::string::npos);
  EXPECT_NE(m.text().find("x=\"0%\" width=\"50%\""), std::string::npos);
}

HeatMap map_of(std::size_t rows, std::size_t columns, float value) {
  HeatMap map;
  map.title = "t", map.note = "n", map.x_label = "step", map.first = 1, map.last = 100, map.columns = columns;
  for (std::size_t i = 0; i < rows; ++i)
    map.rows.push_back({"l." + std::to_string(i / 3) + ".a.x", "l." + std::to_string(i / 3) + ".a", "l." + std::to_string(i / 3)});
  map.values.assign(rows * columns, value);
  map.bins = {{1, "h0", "0-1"}, {INFINITY, "h1", "above"}};
  return map;
}

TEST(HeatMap, AnEvenRowIsOneStrokeAndAChangeStartsAnother) {
  HeatMap map = map_of(2, 10, 0.5f);
  map.values[13] = 2, map.values[14] = 2, map.values[5] = NAN;
  Markup m;
  draw(m, map);
  EXPECT_EQ(WellFormed::fault(m.text()), "");
  EXPECT_NE(m.text().find("d=\"M0 0h5M6 0h4M0 1h3M5 1h5\""), std::string::npos) << m.text();
  EXPECT_NE(m.text().find("class=\"h1\" d=\"M3 1h2\""), std::string::npos);
}

TEST(HeatMap, ANonFiniteCellIsAnAlarmWhateverItsValue) {
  HeatMap map = map_of(1, 4, 0.5f);
  map.alarms = {0, 0, 1, 0};
  Markup m;
  draw(m, map);
  EXPECT_NE(m.text().find("class=\"alarm\" d=\"M2 0h1\""), std::string::npos);
  EXPECT_NE(m.text().find("non-finite"), std::string::npos);
}

TEST(HeatMap, SaysInWordsThatThereIsNothingToSee) {
  HeatMap map = map_of(3, 4, 0);
  map.nothing = "None.";
  Markup m;
  draw(m, map);
  EXPECT_NE(m.text().find("None."), std::string::npos);
  EXPECT_EQ(m.text().find("<svg"), std::string::npos);
}

TEST(LineChart, OfOnePointHasAMark) {
  LineChart chart{.title = "t", .note = "", .x_label = "x", .y_label = "y"};
  chart.lines = {{.name = "l", .points = {{0.5, 0.5}}}}, chart.legend = false;
  Markup m;
  draw(m, chart);
  EXPECT_EQ(count(m.text(), "class=\"mark\""), 1u);
}

TEST(HeatMap, HasTheStepOfItsOnlyColumnOnceAndWholeStepsOtherwise) {
  for (const auto& [last, labels] : {std::pair(100.0, 1u), {101.0, 2u}, {102.0, 3u}}) {
    HeatMap map = map_of(1, std::size_t(last) - 99, 0.5f);
    map.first = 100, map.last = last;
    Markup m;
    draw(m, map);
    EXPECT_EQ(count(m.text(), "class=\"tick\""), labels) << last;
    EXPECT_EQ(count(m.text(), ">100</text>"), 1u) << last;
  }
}

TEST(HeatMap, LabelsNeverTouchAndNeverVanishHoweverManyRows) {
  for (const std::size_t rows : {1u, 10u, 60u, 100u, 400u, 3000u}) {
    Markup m;
    draw(m, map_of(rows, 30, 0.5f));
    const std::string rows_group = m.text().substr(m.text().find("class=\"rows\""));
    EXPECT_GE(count(rows_group, "text-anchor=\"end\""), 2u) << rows;  // with the x axis' own
    EXPECT_EQ(WellFormed::fault(m.text()), "");
  }
}

}  // namespace
}  // namespace octet::telemetry::report
