#include "octet/telemetry/findings.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace octet::telemetry {
namespace {

ComparisonRow row(const std::string& arm, Verdict verdict, double gap = 0, double half_width = NAN, int twin = 0) {
  ComparisonRow r;
  r.arm = arm, r.verdict = verdict, r.gap = gap, r.gap_half_width = half_width, r.gap_deviation = half_width / 2, r.twin = twin,
  r.seeds = 3;
  return r;
}

TEST(Findings, NameEveryArmByItsVerdictAndTheDistanceOfTheTwins) {
  const Comparison c{.baseline = "bf16",
                     .tolerance = 0.005,
                     .rows = {row("bf16", Verdict::baseline), row("bf16", Verdict::baseline, -0.0021, NAN, 1), row("a", Verdict::within),
                              row("b", Verdict::within), row("c", Verdict::over, 0.083, 0.004), row("d", Verdict::diverged, NAN)}};
  EXPECT_EQ(findings(c),
            "a and b are within 0.50% of bf16. c (+8.30% ±0.40%) is over 0.50% of bf16. d diverged. c can be distinguished from bf16, the "
            "others cannot. A twin of bf16, whose first weights differ "
            "in their last bit, ends 0.21% from it.");
}

TEST(Findings, OfAnArmThatIsNotResolvedSayHowManySeedsWouldTell) {
  Comparison c{
      .baseline = "bf16", .tolerance = 0.005, .rows = {row("bf16", Verdict::baseline), row("a", Verdict::not_resolved, 0.002, 0.0124)}};
  c.rows[1].gap_deviation = 0.005;
  // t(0.025, 5) = 2.5706 / sqrt(6) = 1.05 is above 1, t(0.025, 6) = 2.4469 / sqrt(7) = 0.92 is not.
  EXPECT_EQ(findings(c),
            "a (+0.20% ±1.24%) is not resolved against 0.50% of bf16. No arm can be distinguished from bf16: every interval contains 0. "
            "Intervals of ±0.50% need about 7 seeds of such runs, or longer runs.");
  EXPECT_EQ(verdict_text(c.rows[1]), "not resolved (±1.24%)");
  c.rows[1].gap_half_width = NAN;
  EXPECT_EQ(verdict_text(c.rows[1]), "not resolved");
}

TEST(Findings, OfOneSeedDistinguishNothing) {
  Comparison c{.baseline = "bf16", .tolerance = 0.005, .rows = {row("bf16", Verdict::baseline), row("a", Verdict::not_resolved, 0.02)}};
  c.rows[1].seeds = 1;
  EXPECT_EQ(findings(c).substr(0, findings(c).find(" Intervals")),
            "a (+2.00%) is not resolved against 0.50% of bf16. One seed distinguishes no arm from bf16.");
}

TEST(Findings, BeginWithArmsThatRunLittleOrNothingInEightBits) {
  Comparison c{.baseline = "bf16",
               .tolerance = 0.005,
               .rows = {row("bf16", Verdict::baseline), row("a", Verdict::within), row("b", Verdict::within), row("c", Verdict::within),
                        row("d", Verdict::within)}};
  c.rows[1].eight_bit_share = c.rows[2].eight_bit_share = 0, c.rows[3].eight_bit_share = 0.231, c.rows[4].eight_bit_share = 0.5;
  EXPECT_TRUE(
      findings(c).starts_with("No layer of a and b runs in FP8: the plan has the reasons. Less than half of the work of matrix products "
                              "runs in FP8: c (23% of FLOP in FP8). a, b, c and d are within 0.50% of bf16. "))
      << findings(c);
  EXPECT_EQ(verdict_text(c.rows[1]), "within, no layer in FP8");
  EXPECT_EQ(verdict_text(c.rows[3]), "within, 23% of FLOP in FP8");
  for (const int i : {0, 4}) EXPECT_EQ(few_eight_bits(c.rows[std::size_t(i)].eight_bit_share), "");
}

TEST(Findings, OfTheBaselineAloneSaySo) {
  EXPECT_EQ(findings({.baseline = "fp32", .tolerance = 0.005, .rows = {row("fp32", Verdict::baseline)}}), "fp32 alone was trained.");
}

TEST(Findings, SeedsGrowWithNoiseAndWithArmsThatShareTheLevel) {
  EXPECT_EQ(seeds_to_resolve(1, 1, 1, 0.95), 7);
  EXPECT_EQ(seeds_to_resolve(1, 1e-9, 1, 0.95), fewest_pairs);
  EXPECT_GT(seeds_to_resolve(1, 1, 5, 0.95), 7);
  // With many seeds Student's quantile is the normal one: n = (1.959964 * 10)^2 = 384.1, and a little more.
  EXPECT_NEAR(seeds_to_resolve(1, 10, 1, 0.95), 385, 2);
  EXPECT_EQ(seeds_to_resolve(1e-9, 1, 1, 0.95), 10000);
}

TEST(Findings, NoiseIsEstimatedFromDeviationsOrElseFromSingleGaps) {
  Comparison c{.baseline = "bf16",
               .rows = {row("bf16", Verdict::baseline), row("a", Verdict::not_resolved, 0.1, 0.006), row("b", Verdict::over, 0.2, 0.008)}};
  EXPECT_NEAR(pair_deviation(c), std::sqrt((0.003 * 0.003 + 0.004 * 0.004) / 2), 1e-15);
  for (ComparisonRow& r : c.rows) r.gap_deviation = NAN;
  c.rows.push_back(row("c", Verdict::over, -0.3));
  EXPECT_NEAR(pair_deviation(c), 0.2 / 0.6744897501960817, 1e-15);
  EXPECT_TRUE(std::isnan(pair_deviation({.baseline = "bf16"})));
}

}  // namespace
}  // namespace octet::telemetry
