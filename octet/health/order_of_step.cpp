#include "octet/health/order_of_step.hpp"

#include <algorithm>
#include <numeric>

#include "octet/health/family.hpp"

namespace octet::health {

std::vector<std::size_t> order_of_step(const std::vector<telemetry::QuantizerFacts>& quantizers) {
  std::vector<std::size_t> order(quantizers.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  const auto part = [&](std::size_t i) { return quantizers[i].operand == "w" ? 0 : is_gradient(quantizers[i].operand) ? 2 : 1; };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    if (part(a) != part(b)) return part(a) < part(b);
    return part(a) == 2 ? a > b : a < b;
  });
  return order;
}

}  // namespace octet::health
