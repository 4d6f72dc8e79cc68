#include "octet/models/config.hpp"

#include <utility>

namespace octet::models {

std::int64_t ExpertsShape::layers_before(std::int64_t n) const {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) count += in_layer(i) ? 1 : 0;
  return count;
}

std::int64_t ModelShape::attention_parameters() const {
  const std::int64_t queries = heads * head_dim, out = heads * value_columns() * width;
  if (!latent) return width * (queries + 2 * kv_heads * head_dim) + out;
  const std::int64_t expanded = heads * (head_dim - latent.turned + latent.value_width);
  const std::int64_t of_queries = latent.query_rank > 0 ? latent.query_rank * (width + queries) : width * queries;
  return of_queries + width * (latent.rank + latent.turned) + latent.rank * expanded + out;
}

std::vector<std::int64_t> ModelShape::layers_with_experts() const {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < all_layers(); ++i)
    if (experts.in_layer(i)) out.push_back(i);
  return out;
}

ModelShape ModelShape::of_files() const {
  ModelShape out = *this;
  out.kept_layers += std::exchange(out.mtp_depth, 0);
  return out;
}

// A sigmoid's scores may all be 0, so their sum has a least value, and a group's score is that of two experts, as in DeepSeek-V3.
ops::Routing ExpertsShape::routing() const {
  const bool sigmoid = score == ops::Routing::Score::sigmoid;
  return {.score = score,
          .group_score = sigmoid ? ops::Routing::GroupScore::two_largest : ops::Routing::GroupScore::largest,
          .choices = chosen,
          .groups = groups,
          .kept_groups = kept_groups,
          .normalize = normalize,
          .floor = sigmoid ? 1e-20f : 0,
          .scaling = float(scaling),
          .in_turn = in_turn};
}

}  // namespace octet::models
