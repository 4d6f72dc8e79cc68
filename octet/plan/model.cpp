#include "octet/plan/model.hpp"

#include "octet/models/registry.hpp"

namespace octet::plan {

double PlannedModel::attention_parameters() const {
  if (attention > 0) return double(attention);
  return double(shape.width) * double(2 * query_columns() + 2 * key_columns());
}

namespace {

double mlp(const PlannedModel& m, std::int64_t hidden) { return (m.gated ? 3.0 : 2.0) * double(m.shape.width) * double(hidden); }

// The average over layers of a value of dense layers and one of layers with experts.
double averaged(const PlannedModel& m, double dense, double expert) {
  const double share = m.expert_layers() / double(m.layers());
  return (1 - share) * dense + share * expert;
}

}  // namespace

double PlannedModel::shared_parameters() const {
  const double router = double(shape.width) * double(experts.count);
  return averaged(*this, 0, double(experts.shared) * mlp(*this, experts.hidden) + router);
}

double PlannedModel::dense_parameters() const {
  return attention_parameters() + averaged(*this, mlp(*this, shape.hidden), 0) + shared_parameters();
}

double PlannedModel::routed_parameters() const { return averaged(*this, 0, double(experts.count) * mlp(*this, experts.hidden)); }

double PlannedModel::active_parameters() const {
  return dense_parameters() + averaged(*this, 0, double(experts.per_token) * mlp(*this, experts.hidden));
}

PlannedModel PlannedModel::layer_ahead() const {
  PlannedModel out = *this;
  out.shape.layers = 1, out.shape.mtp_depth = 0, out.experts.dense_layers = 0;
  return out;
}

double PlannedModel::parameters() const {
  const PlannedModel one = layer_ahead();
  return double(layers()) * (dense_parameters() + routed_parameters()) + (shape.tied ? 1 : 2) * end_parameters() +
         double(ahead()) * (one.dense_parameters() + one.routed_parameters() + joining_parameters());
}

double PlannedModel::used_parameters() const {
  return double(layers()) * active_parameters() + end_parameters() +
         double(ahead()) * (layer_ahead().active_parameters() + joining_parameters() + end_parameters());
}

double PlannedModel::active_hidden() const {
  return averaged(*this, double(shape.hidden), double((experts.shared + experts.per_token) * experts.hidden));
}

PlannedModel planned_model(const models::ModelShape& shape) {
  const models::ModelFamily& family = models::model_family(shape.family);
  PlannedModel out{.shape = shape, .gated = family.gated, .norms_of_all_heads = family.norms_of_all_heads};
  const models::ExpertsShape& e = shape.experts;
  if (shape.latent) {
    out.attention = shape.attention_parameters();
    out.score_width = double(shape.heads * (shape.head_dim + shape.value_columns())) / 2;
  }
  if (e)
    out.experts = {.count = e.number,
                   .per_token = e.chosen,
                   .shared = e.shared,
                   .hidden = e.width,
                   .dense_layers = shape.layers - e.layers_before(shape.layers)};
  return out;
}

namespace {

PlannedModel llama3(std::int64_t layers, std::int64_t width, std::int64_t hidden, std::int64_t heads) {
  return planned_model({.family = "llama",
                        .width = width,
                        .layers = layers,
                        .heads = heads,
                        .kv_heads = 8,
                        .head_dim = 128,
                        .hidden = hidden,
                        .vocabulary = 128256,
                        .max_sequence = 8192});
}

}  // namespace

PlannedModel gpt_model(std::int64_t layers, std::int64_t width, std::int64_t heads, std::int64_t vocabulary) {
  return planned_model({.family = "gpt2",
                        .width = width,
                        .layers = layers,
                        .heads = heads,
                        .kv_heads = heads,
                        .head_dim = width / heads,
                        .hidden = 4 * width,
                        .vocabulary = vocabulary,
                        .max_sequence = 2048,
                        .tied = true});
}

const std::vector<NamedModel>& large_models() {
  static const std::vector<NamedModel> all{{"llama-3-70b", llama3(80, 8192, 28672, 64)},
                                           {"gpt-3-175b", gpt_model(96, 12288, 96, 51200)},
                                           {"llama-3-405b", llama3(126, 16384, 53248, 128)},
                                           {"deepseek-v3", planned_model(models::model_size("deepseek-v3"))}};
  return all;
}

}  // namespace octet::plan
