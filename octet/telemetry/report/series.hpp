#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace octet::telemetry::report {

struct Point {
  double x = 0, y = 0;
};
using Points = std::vector<Point>;

/// Exponential moving average, y[i] = sum_k a^k y[i-k] / sum_k a^k with a = 1 - 1 / w: w is `window` points, and at the beginning, where
/// losses fall fast, a quarter of the points so far, so that the line does not lag behind. Points that are not finite are dropped.
Points smoothed(const Points&, double window);

/// At most `most` points that keep the line's shape: of each bucket the one that spans the largest triangle with the point kept before
/// and the mean of the bucket after. Source: Steinarsson 2013, "Downsampling time series for visual representation", section 4.2.
Points thinned(const Points&, std::size_t most);

/// Several lines as one: their mean at every x that all of them have, and their range there.
struct Bundle {
  Points mean, low, high;
};
Bundle bundled(std::span<const Points> lines);

/// Smallest and largest finite y of all lines; {NaN, NaN} where there is none.
struct Extent {
  double low, high;
};
Extent extent(std::span<const Points> lines);

/// The value below which a share `q` of the values lies; NaN of none. Reorders them.
double quantile(std::vector<double>& values, double q);

}  // namespace octet::telemetry::report
