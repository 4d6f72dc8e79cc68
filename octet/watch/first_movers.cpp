#include "octet/watch/first_movers.hpp"

#include <algorithm>
#include <cmath>

#include "octet/telemetry/median.hpp"

namespace octet::watch {
namespace {

constexpr double least_deviation = 0.25, most_deviations = 6;

// Recovery has taken its layer to a recipe without this quantizer.
bool in_another_precision(const telemetry::ScalesEvent& e, std::size_t tensor) {
  return std::isnan(e.amax[tensor]) && tensor < e.scale_min.size() && std::isnan(e.scale_min[tensor]);
}

}  // namespace

std::vector<Mover> first_movers(const std::vector<telemetry::ScalesEvent>& events, std::size_t quiet, std::size_t most) {
  std::vector<Mover> movers;
  if (events.empty() || quiet == 0 || quiet >= events.size()) return movers;
  for (std::size_t tensor = 0; tensor < events.front().amax.size(); ++tensor) {
    const auto log_amax = [&](std::size_t i) { return std::log2(double(events[i].amax[tensor])); };
    std::vector<double> usual;
    for (std::size_t i = 0; i < quiet; ++i)
      if (std::isfinite(log_amax(i))) usual.push_back(log_amax(i));
    if (usual.empty()) continue;
    const double center = telemetry::median_of(usual);
    for (double& x : usual) x = std::fabs(x - center);
    const double deviation = std::max(telemetry::deviation_per_median_distance * telemetry::median_of(usual), least_deviation);
    for (std::size_t i = quiet; i < events.size(); ++i) {
      if (in_another_precision(events[i], tensor)) continue;
      const double x = log_amax(i), bits = std::isnan(x) ? INFINITY : x - center;
      if (std::fabs(bits) / deviation <= most_deviations) continue;
      movers.push_back({tensor, events[i].step, bits, std::fabs(bits) / deviation});
      break;
    }
  }
  std::sort(movers.begin(), movers.end(), [](const Mover& a, const Mover& b) {
    return a.step != b.step                         ? a.step < b.step
           : std::fabs(a.bits) != std::fabs(b.bits) ? std::fabs(a.bits) > std::fabs(b.bits)
                                                    : a.tensor < b.tensor;
  });
  movers.resize(std::min(movers.size(), most));
  return movers;
}

}  // namespace octet::watch
