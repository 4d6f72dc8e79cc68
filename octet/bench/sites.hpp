#pragma once

#include <memory>
#include <vector>

#include "octet/models/config.hpp"
#include "octet/scaling/precision.hpp"

namespace octet::bench {

/// The linear layers of a model that differ in shape: those of its first block, and its head. Of latent attention, those that read the
/// block's input and make its output; of experts, the shared ones, or where there are none the stacks of all routed ones.
struct Sites {
  scaling::Site qkv, attention_out, mlp_in, mlp_out, head;

  std::vector<scaling::Site> all() const { return {qkv, attention_out, mlp_in, mlp_out, head}; }
};
/// From the rows of a model's plan.
Sites sites_of(const std::vector<scaling::PlanRow>& plan, const models::ModelShape&);

/// The plans of all sites under one recipe, with the state of their quantizers. Recipes whose GEMMs read the same layouts with the same
/// accumulation may share `layout`.
struct PlannedSites {
  std::string recipe;
  std::string layout;  // "e4m3 tensor, e4m3 tensor, e5m2 tensor, fast forward"
  std::unique_ptr<scaling::Precision> precision;
  std::vector<scaling::LinearPlan> plans;  // of qkv, attention_out, mlp_in, mlp_out, head

  const scaling::LinearPlan& qkv() const { return plans[0]; }
  const scaling::LinearPlan& mlp_in() const { return plans[2]; }
  const scaling::LinearPlan& mlp_out() const { return plans[3]; }
  DType activations() const { return precision->activations(); }
};
/// State is allocated in the run's region. The head runs in the recipe's precision too.
PlannedSites plan_sites(Stream&, const Sites&, const scaling::PrecisionConfig&);

}  // namespace octet::bench
