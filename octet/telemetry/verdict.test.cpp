#include "octet/telemetry/verdict.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "octet/base/error.hpp"

namespace octet::telemetry {
namespace {

/// Gaps with this mean whose interval at 95% reaches `reach` to either side, of `pairs` pairs.
PairedGap gap_of(double mean, double reach, int pairs = 5) { return {pairs, mean, reach / half_width({pairs, 0, 1}, 0.95)}; }

// Student 1908, "The Probable Error of a Mean", table of the sleep of ten patients under two drugs: differences 1.2, 2.4, ..., of which the
// standard textbook analysis (R's t.test(extra ~ group, data = sleep, paired = TRUE)) gives t = -4.0621, p = 0.002833 and
// [0.7001142, 2.4598858].
TEST(PairedGap, EqualsThePublishedAnalysisOfStudentsSleepData) {
  const double differences[] = {1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4};
  const PairedGap gap = paired_gap(differences);
  EXPECT_EQ(gap.pairs, 10);
  EXPECT_NEAR(gap.mean, 1.58, 1e-12);
  EXPECT_NEAR(half_width(gap, 0.95), (2.4598858 - 0.7001142) / 2, 1e-6);
  EXPECT_NEAR(p_value(gap, 0), 0.002833, 1e-6);
}

TEST(PairedGap, LeavesOutWhatIsNotFiniteAndHasNoIntervalOfOnePair) {
  const double differences[] = {NAN, 2, INFINITY};
  const PairedGap gap = paired_gap(differences);
  EXPECT_EQ(gap.pairs, 1);
  EXPECT_EQ(gap.mean, 2);
  EXPECT_TRUE(std::isnan(gap.deviation) && std::isnan(half_width(gap, 0.95)));
  EXPECT_TRUE(std::isnan(paired_gap({}).mean));
}

TEST(Verdict, FollowsFromWhereTheWholeIntervalLies) {
  const auto verdict = [](double mean, double reach) { return judge(std::vector{gap_of(mean, reach)}, 0.005, 0.95)[0].verdict; };
  EXPECT_EQ(verdict(0.001, 0.0039), Verdict::within);
  EXPECT_EQ(verdict(0.001, 0.0041), Verdict::not_resolved);
  EXPECT_EQ(verdict(0.008, 0.0029), Verdict::over);
  EXPECT_EQ(verdict(0.008, 0.0031), Verdict::not_resolved);
  EXPECT_EQ(verdict(-0.05, 0.01), Verdict::within) << "an arm that is better than the baseline passes";
}

TEST(Verdict, OfFewerThanThreePairsIsNeverResolved) {
  for (const int pairs : {0, 1, 2}) {
    const Judged judged = judge(std::vector<PairedGap>{{pairs, 5.0, 0.0}}, 0.005, 0.95)[0];
    EXPECT_EQ(judged.verdict, Verdict::not_resolved) << pairs;
  }
  EXPECT_EQ(judge(std::vector<PairedGap>{{3, 5.0, 0.0}}, 0.005, 0.95)[0].verdict, Verdict::over);
}

// Two arms that one test each would resolve: with two of them the clearer needs 97.5%, and then the other needs 95%.
TEST(Verdict, SeveralArmsShareOneChanceOfError) {
  const double wider = half_width({5, 0, 1}, 0.975) / half_width({5, 0, 1}, 0.95);
  const PairedGap barely = gap_of(0, 0.0049), clear = gap_of(0, 0.0049 / wider);
  EXPECT_EQ(judge(std::vector{barely}, 0.005, 0.95)[0].verdict, Verdict::within);
  const auto both = judge(std::vector{barely, clear}, 0.005, 0.95);
  EXPECT_EQ(both[0].verdict, Verdict::within) << "the clear one was rejected first, and leaves the whole level";
  EXPECT_EQ(both[1].verdict, Verdict::within);
  EXPECT_NEAR(both[1].half_width, 0.0049, 1e-12);
  const auto neither = judge(std::vector{barely, barely}, 0.005, 0.95);
  EXPECT_EQ(neither[0].verdict, Verdict::not_resolved);
  EXPECT_EQ(neither[1].verdict, Verdict::not_resolved) << "after one that is not resolved none is";
  EXPECT_NEAR(neither[1].half_width, 0.0049 * wider, 1e-12);
}

TEST(Verdict, HasANameOfItsOwn) {
  for (const Verdict v : {Verdict::baseline, Verdict::within, Verdict::over, Verdict::not_resolved, Verdict::diverged})
    EXPECT_EQ(verdict_named(to_text(v)), v);
  EXPECT_FALSE(verdict_named("OVER"));
}

}  // namespace
}  // namespace octet::telemetry
