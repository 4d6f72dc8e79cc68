#include "octet/train/layout/subject.hpp"

#include <algorithm>

#include "octet/base/text.hpp"
#include "octet/comm/dry_run/dry_run.hpp"
#include "octet/nn/visitor.hpp"
#include "octet/parallel/tensor_group.hpp"

namespace octet::train {
namespace {

// And the members, whose partition the model refers to.
struct OwningShard : ModelShard {
  OwningShard(models::ModelShape shape, const models::AdapterConfig& adapters, std::int64_t members)
      : ranks(int(members)), partition(parallel::partition_of(ranks, parallel::TensorWire::activations)) {
    if (!adapters) {
      shape.layers = 1;
      shape.experts.first_dense = 0, shape.experts.step = 1, shape.experts.dense.clear();
    }
    model = models::make_model(shape, {.partition = partition.get()}, precision);
    models::attach_adapters(*model, adapters, precision, *partition, draws);
    struct Collect final : nn::Visitor {
      struct Of {
        std::vector<Parameter*> all, stacks;
      } own, adapters;
      const Parameter* stack = nullptr;
      void add(Parameter& p, Of& to) const {
        to.all.push_back(&p);
        if (&p == stack) to.stacks.push_back(&p);
      }
      void experts(const Parameter& p) override { stack = &p; }
      void parameter(Parameter& p) override { add(p, own); }
      void adapter(Parameter& p) override { add(p, adapters); }
    } collect;
    model->visit(collect);
    auto& trained = adapters ? collect.adapters : collect.own;
    parameters = std::move(trained.all), stacks = std::move(trained.stacks);
  }

  comm::DryRunCommunicator ranks;
  std::unique_ptr<nn::Partition> partition;
  scaling::Precision precision{scaling::PrecisionConfig{}};
  nn::DropoutDraws draws;
};

}  // namespace

const ModelShard& ModelShards::of(const models::ModelShape& shape, const models::AdapterConfig& adapters, std::int64_t members) {
  if (shape != shape_ || adapters != adapters_) shape_ = shape, adapters_ = adapters, made_.clear();
  std::shared_ptr<ModelShard>& part = made_[members];
  if (!part) part = std::make_shared<OwningShard>(shape, adapters, members);
  return *part;
}

optim::StateStorage Subject::storage(const Layout& l) const {
  if (!optimizer) return {};
  optim::OptimizerConfig c = *optimizer;
  c.level = l.level;
  return c.storage();
}

const models::ModelFamily* Subject::family() const {
  const auto& all = models::model_families();
  const auto found = std::ranges::find(all, shape.family, &models::ModelFamily::name);
  return found == all.end() ? nullptr : &*found;
}

namespace {

template <class Belongs>
std::string families_where(const Belongs& belongs) {
  std::vector<std::string_view> names;
  for (const models::ModelFamily& f : models::model_families())
    if (belongs(f)) names.push_back(f.name);
  if (names.size() < 2) return joined(names);
  const std::string_view last = names.back();
  names.pop_back();
  return format("{} or {}", joined(names), last);
}

}  // namespace

std::string families_that(bool models::ModelFamily::*can) {
  return families_where([can](const models::ModelFamily& f) { return f.*can; });
}

std::string all_families() {
  return families_where([](const models::ModelFamily&) { return true; });
}

}  // namespace octet::train
