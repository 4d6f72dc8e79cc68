#include "octet/telemetry/event.hpp"

#include <numeric>
#include <span>

namespace octet::telemetry {

std::vector<double> relative_loads(const ExpertsEvent& e, std::size_t i) {
  const std::span counts = std::span(e.counts).subspan(i * std::size_t(e.experts), std::size_t(e.experts));
  const double mean = double(std::accumulate(counts.begin(), counts.end(), std::int64_t(0))) / double(e.experts);
  std::vector<double> loads;
  for (const std::int64_t count : counts)
    if (mean > 0) loads.push_back(double(count) / mean);
  return loads;
}

double load_entropy(const ExpertsEvent& e, std::size_t i) {
  const std::span counts = std::span(e.counts).subspan(i * std::size_t(e.experts), std::size_t(e.experts));
  const double all = double(std::accumulate(counts.begin(), counts.end(), std::int64_t(0)));
  if (all == 0) return NAN;
  if (e.experts == 1) return 1;
  double entropy = 0;
  for (const std::int64_t count : counts)
    if (count > 0) entropy -= double(count) / all * std::log(double(count) / all);
  return entropy / std::log(double(e.experts));
}

}  // namespace octet::telemetry
