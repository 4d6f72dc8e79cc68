#include "octet/telemetry/report/series.hpp"

#include <algorithm>
#include <cmath>

namespace octet::telemetry::report {

Points smoothed(const Points& points, double window) {
  double sum = 0, weight = 0;
  Points out;
  for (const Point& p : points) {
    if (!std::isfinite(p.y)) continue;
    const double w = std::min(window, double(out.size() + 1) / 4), keep = w > 1 ? 1 - 1 / w : 0;
    sum = keep * sum + p.y, weight = keep * weight + 1;
    out.push_back({p.x, sum / weight});
  }
  return out;
}

Points thinned(const Points& points, std::size_t most) {
  const std::size_t n = points.size();
  if (n <= most || most < 3) return points;
  const double size = double(n - 2) / double(most - 2);
  const auto bucket = [&](std::size_t i) { return std::min(n - 1, 1 + std::size_t(double(i) * size)); };  // its first point
  Points out{points.front()};
  for (std::size_t i = 0; i + 2 < most; ++i) {
    const std::size_t first = bucket(i), next = bucket(i + 1), after = std::max(next + 1, bucket(i + 2));
    Point mean;
    for (std::size_t j = next; j < after; ++j) mean.x += points[j].x / double(after - next), mean.y += points[j].y / double(after - next);
    const Point last = out.back();
    double largest = -1;
    Point best = points[first];
    for (std::size_t j = first; j < next; ++j) {
      const double area = std::fabs((last.x - mean.x) * (points[j].y - last.y) - (last.x - points[j].x) * (mean.y - last.y));
      if (area > largest) largest = area, best = points[j];
    }
    out.push_back(best);
  }
  out.push_back(points.back());
  return out;
}

Bundle bundled(std::span<const Points> lines) {
  Bundle out;
  if (lines.empty()) return out;
  std::vector<std::size_t> at(lines.size(), 0);
  for (const Point& p : lines[0]) {
    double sum = 0, low = p.y, high = p.y;
    bool all = true;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      while (at[i] < lines[i].size() && lines[i][at[i]].x < p.x) ++at[i];
      if (at[i] == lines[i].size() || lines[i][at[i]].x != p.x) {
        all = false;
        break;
      }
      const double y = lines[i][at[i]].y;
      sum += y, low = std::min(low, y), high = std::max(high, y);
    }
    if (!all) continue;
    out.mean.push_back({p.x, sum / double(lines.size())});
    out.low.push_back({p.x, low}), out.high.push_back({p.x, high});
  }
  return out;
}

Extent extent(std::span<const Points> lines) {
  Extent out{NAN, NAN};
  for (const Points& line : lines)
    for (const Point& p : line)
      if (std::isfinite(p.y)) out = {std::fmin(out.low, p.y), std::fmax(out.high, p.y)};
  return out;
}

double quantile(std::vector<double>& values, double q) {
  if (values.empty()) return NAN;
  const auto at = values.begin() + std::lround(q * double(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace octet::telemetry::report
