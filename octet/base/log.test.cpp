#include "octet/base/log.hpp"

#include <gtest/gtest.h>

namespace octet::log {
namespace {

std::vector<std::pair<Level, std::string>> taken;

TEST(Log, LinesGoToTheSink) {
  taken.clear();
  set_sink([](Level level, std::string_view text) { taken.emplace_back(level, text); });
  ::testing::internal::CaptureStderr();
  info("{} steps", 3);
  warn("no {}", "disk");
  status("a bar");
  {
    const Silence none;
    warn("of another rank");
  }
  set_sink(nullptr);
  warn("shown");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "warning: shown\n");
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0], (std::pair<Level, std::string>(Level::info, "3 steps")));
  EXPECT_EQ(taken[1], (std::pair<Level, std::string>(Level::warning, "no disk")));
}

}  // namespace
}  // namespace octet::log
