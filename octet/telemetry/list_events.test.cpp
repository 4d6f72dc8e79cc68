#include <gtest/gtest.h>

#include "octet/telemetry/event_line.hpp"
#include "octet/telemetry/list_events.hpp"

namespace octet::telemetry {
namespace {

const std::vector<float> hard = {0, -0.0f, 1, -3.25f, 1e-45f, 3.4e38f, 0.1f, 12345678, NAN, 1.17549435e-38f};

TEST(ListEvents, HaveTheValuesThatTheGeneralParserReads) {
  const std::vector<std::int64_t> counts(hard.size(), 7);
  const Event events[] = {
      ScalesEvent{.step = 3, .time = 0.25, .amax = hard, .scale_min = hard, .scale_max = hard}, ScalesEvent{.step = 0, .time = NAN},
      HealthEvent{.step = 9, .time = 1e9, .headroom_bits = hard, .saturated = hard, .flushed = hard, .sqnr_db = hard, .nonfinite = counts},
      HealthEvent{.step = 9,
                  .time = 1,
                  .headroom_bits = hard,
                  .saturated = hard,
                  .flushed = hard,
                  .sqnr_db = hard,
                  .nonfinite = counts,
                  .scale_deviation = hard,
                  .lossy_blocks = hard},
      HealthEvent{
          .step = 9, .headroom_bits = {1}, .saturated = {0}, .flushed = {0}, .sqnr_db = {30}, .nonfinite = {0}, .scale_deviation = {1.5f}}};
  for (const Event& event : events) {
    const std::string line = event_line(event);
    const std::optional<Event> scanned = scan_list_event(line);
    ASSERT_TRUE(scanned) << line;
    EXPECT_EQ(scanned->index(), event.index());
    EXPECT_EQ(event_line(*scanned), event_line(parse_event(line, "")));
  }
}

TEST(ListEvents, LeaveEveryOtherFormToTheGeneralParser) {
  const std::string line = event_line(ScalesEvent{.step = 3, .time = 1, .amax = {2.5f}, .scale_min = {1}, .scale_max = {1}});
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string other = line;
    return other.replace(other.find(from), from.size(), to);
  };
  ASSERT_TRUE(scan_list_event(line));
  for (const std::string& other :
       {with("2.5", "inf"), with("2.5", "-inf"), with("2.5", "nan"), with("2.5", ".5"), with("2.5", "2."), with("2.5", "02.5"),
        with("2.5", "0x2"), with("2.5", "1e39"), with("2.5", "2.5,"), with("2.5", "\"2.5\""), with("\"step\":3", "\"step\":-3"),
        with("\"step\":3", "\"step\":3.5"), with("scales", "scale"), with("\"amax\"", "\"amux\""), line + " ",
        line.substr(0, line.size() - 1), std::string(), with(",\"time\"", ", \"time\"")})
    EXPECT_FALSE(scan_list_event(other)) << other;
  for (std::size_t n = 0; n < line.size(); ++n) EXPECT_FALSE(scan_list_event(line.substr(0, n)));
}

}  // namespace
}  // namespace octet::telemetry
