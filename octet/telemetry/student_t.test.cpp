#include "octet/telemetry/student_t.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "octet/base/error.hpp"

namespace octet::telemetry {
namespace {

// Fisher and Yates 1963, "Statistical Tables", table III, with the digits of NIST's DATAPLOT.
TEST(StudentT, QuantilesEqualPublishedTables) {
  const struct {
    double tail;
    int freedom;
    double t;
  } table[] = {{0.025, 1, 12.7062047}, {0.025, 2, 4.3026527},  {0.025, 3, 3.1824463},  {0.025, 4, 2.7764451},   {0.025, 5, 2.5705818},
               {0.025, 7, 2.3646243},  {0.025, 10, 2.2281389}, {0.025, 30, 2.0422725}, {0.025, 120, 1.9799304}, {0.005, 1, 63.6567412},
               {0.005, 2, 9.9248432},  {0.005, 5, 4.0321430},  {0.005, 10, 3.1692727}, {0.05, 1, 6.3137515},    {0.05, 2, 2.9199856},
               {0.05, 9, 1.8331129},   {0.0005, 4, 8.6103016}, {0.25, 3, 0.7648923}};
  for (const auto& row : table)
    EXPECT_NEAR(student_t_quantile(row.tail, row.freedom), row.t, 1e-6 * row.t) << row.tail << " " << row.freedom;
}

TEST(StudentT, TailsEqualClosedForms) {
  for (const double t : {0.0, 1e-6, 0.1, 1.0, 2.5, 30.0, 1e4}) {
    const double one = t > 1 ? std::atan(1 / t) / std::numbers::pi : 0.5 - std::atan(t) / std::numbers::pi;  // Cauchy's distribution
    const double root = std::sqrt(2 + t * t), two = 1 / (root * (root + t));                                 // (1 - t / root) / 2
    EXPECT_NEAR(student_t_tail(t, 1), one, 1e-11 * one) << t;
    EXPECT_NEAR(student_t_tail(t, 2), two, 1e-11 * two) << t;
    EXPECT_NEAR(student_t_tail(-t, 2), 1 - two, 1e-15) << t;
  }
}

TEST(StudentT, ManyDegreesOfFreedomApproachTheNormalDistribution) {
  for (const double t : {0.5, 1.0, 2.0, 3.0}) {
    // Abramowitz and Stegun 1964, 26.7.5, to the first order in 1 / freedom.
    const double normal = std::erfc(t / std::numbers::sqrt2) / 2, density = std::exp(-t * t / 2) / std::sqrt(2 * std::numbers::pi);
    EXPECT_NEAR(student_t_tail(t, 100000), normal + density * (t * t * t + t) / 4e5, 1e-7 * normal) << t;
  }
}

TEST(StudentT, TheQuantileInvertsTheTail) {
  for (const int freedom : {1, 2, 3, 11, 99})
    for (const double tail : {1e-6, 0.0125, 0.3, 0.5})
      EXPECT_NEAR(student_t_tail(student_t_quantile(tail, freedom), freedom), tail, 1e-10 * tail) << freedom << " " << tail;
}

TEST(StudentT, NoFreedomAndImpossibleTailsAreBrokenContracts) {
  EXPECT_THROW(student_t_tail(1, 0), ContractError);
  for (const double bad : {0.0, -0.1, 0.6, std::nan("")}) EXPECT_THROW(student_t_quantile(bad, 3), ContractError);
}

}  // namespace
}  // namespace octet::telemetry
