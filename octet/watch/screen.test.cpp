#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "octet/telemetry/sample_run.test.hpp"
#include "octet/watch/runs.hpp"
#include "octet/watch/screen.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::watch {
namespace {

TEST(Screens, FitTheTerminalAndHaveTheLastNumbers) {
  const testing::Scratch scratch;
  telemetry::RunRecord record = testing::sample_run(testing::sample_recipes()[1], 1, {.layers = 4, .steps = 60});
  record.incidents.push_back({.step = 60, .kind = "skipped", .text = "red \x1b[31m text"});
  testing::write_sample(scratch.folder(), record);
  Runs runs({scratch.folder()});
  const WatchedRun& run = runs.loaded(0);
  const std::string full = screen_text(run, {.columns = 200, .rows = 60});
  EXPECT_NE(full.find("step 60 of 60"), std::string::npos) << full;
  char loss[32];
  std::snprintf(loss, sizeof loss, "loss %.5g ", record.steps.back().loss);
  EXPECT_NE(full.find(loss), std::string::npos) << full;
  EXPECT_NE(full.find("red \\x1b[31m text"), std::string::npos) << full;
  EXPECT_EQ(full.find('\x1b'), std::string::npos);
  EXPECT_NE(full.find("finished"), std::string::npos);
  for (const ScreenSize size : {ScreenSize{80, 24}, ScreenSize{40, 10}, ScreenSize{1, 2}}) {
    std::istringstream text(screen_text(run, size));
    int rows = 0;
    for (std::string line; std::getline(text, line); ++rows)
      EXPECT_LE(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }), size.columns) << line;
    EXPECT_LT(rows, size.rows);
  }
}

}  // namespace
}  // namespace octet::watch
