#include "octet/bench/expert_loads.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace octet::bench {

void ExpertLoads::configure(train::RunConfig& config) const {
  if (spread_ > 0) config.model.router_bias_rate = 1e-30;
}

void ExpertLoads::apply(train::Engine& engine) const {
  const Tensor& biases = engine.model->routers().biases();
  if (!biases || spread_ == 0) return;
  const std::int64_t layers = biases.shape[0], experts = biases.shape[1];
  std::vector<float> values;
  for (std::int64_t i = 0; i < layers * experts; ++i) values.push_back(float(spread_ * double(i % experts) / double(experts - 1)));
  set_values(engine.stream, biases, values.data());
}

double ExpertLoads::fullest(train::Engine& engine) {
  const Tensor& counts = engine.model->routers().counts();
  if (!counts) return 0;
  const std::int64_t layers = counts.shape[0], experts = counts.shape[1];
  std::vector<float> n(std::size_t(layers * experts));
  get_values(engine.stream, counts, n.data());
  double sum = 0;
  for (std::int64_t i = 0; i < layers; ++i) {
    const auto first = n.begin() + i * experts, last = first + experts;
    sum += double(*std::max_element(first, last)) * double(experts) / std::max(1.0, std::accumulate(first, last, 0.0));
  }
  return sum / double(layers);
}

}  // namespace octet::bench
