#include "octet/optim/optimizer_config.hpp"

#include "octet/base/check.hpp"
#include "octet/base/text.hpp"
#include "octet/optim/registry.hpp"

namespace octet::optim {
namespace {

constexpr double smallest = 0x1p-126, largest = 0x1.fffffep127;  // normal numbers of f32, in which the update computes

// Positive values of the configuration must be positive and finite in f32.
void require_representable(const OptimizerConfig& c) {
  const auto require = [](const char* key, double x) {
    if (x == 0 || (x >= smallest && x <= largest)) return;
    throw ConfigError(format("optim.{} = {} is {} in f32, in which updates compute; choose a number from {} to {}", key, x,
                             x < 1 ? "0" : "infinite", smallest, largest));
  };
  require("learning_rate", c.learning_rate), require("eps", c.eps);
  require("max_grad_norm", c.max_grad_norm), require("weight_decay", c.weight_decay);
}

void require_safe(const OptimizerConfig& c) {
  const std::string reason = unsafe_reason(c.storage());
  if (!reason.empty() && !c.allow_unsafe) throw ConfigError(format("{}; optim.allow_unsafe = true trains with it nevertheless", reason));
}

}  // namespace

void MuonConfig::fields(config::FieldVisitor& v) {
  v.field("momentum", momentum, "decay of Muon's momentum", {.at_least = 0, .below = 1});
  v.field("update_rms", update_rms, "root mean square of Muon's updates, before the learning rate", {.above = 0, .at_most = 100});
}

void OptimizerConfig::fields(config::FieldVisitor& v) {
  v.choice("name", name, "how weights follow their gradients; muon updates matrices of blocks, and adamw the rest", optimizer_names());
  v.field("learning_rate", learning_rate, "peak learning rate", {.above = 0}, config::OnResume::may_change);
  v.field("beta1", beta1, "decay of the first moment", {.at_least = 0, .below = 1});
  v.field("beta2", beta2, "decay of the second moment", {.at_least = 0, .below = 1});
  v.field("eps", eps, "added to the root of the second moment", {.above = 0});
  v.field("weight_decay", weight_decay, "decoupled decay of matrices", {.at_least = 0}, config::OnResume::may_change);
  v.field("max_grad_norm", max_grad_norm, "global gradient norm above which gradients are scaled down; 0 never", {.at_least = 0},
          config::OnResume::may_change);
  constexpr auto may_change = config::OnResume::may_change;
  v.choice("level", level, "storage of weights, gradients and moments together; docs/recipes.md has what each level stores",
           {{"O0", Level::O0}, {"O1", Level::O1}, {"O2", Level::O2}, {"O3", Level::O3}}, may_change);
  using enum Storage;
  v.choice("master", master, "storage of weight matrices; bf16 and f16 are rounded stochastically", "level",
           {{"f32", f32}, {"bf16", bf16}, {"f16", f16}, {"bf16_nearest", bf16_nearest}, {"e4m3_tensor", e4m3_tensor}}, may_change);
  v.choice("gradients", gradients, "storage of their gradients, as summed over micro-batches; embedding and head keep f32", "level",
           {{"f32", f32}, {"bf16", bf16}, {"e4m3", e4m3}, {"e4m3_tensor", e4m3_tensor}}, may_change);
  v.choice("m", m, "storage of the first moments of matrices; e4m3 has a scale per 128 values", "level",
           {{"f32", f32}, {"bf16", bf16}, {"e4m3", e4m3}, {"e4m3_tensor", e4m3_tensor}, {"e4m3_expanded", e4m3_expanded}}, may_change);
  v.choice("v", this->v, "storage of the second moments of matrices; f16 has a scale per tensor", "level",
           {{"f32", f32},
            {"bf16", bf16},
            {"f16", f16},
            {"e4m3_expanded", e4m3_expanded},
            {"e4m3_root", e4m3_root},
            {"e4m3_tensor", e4m3_tensor}},
           may_change);
  v.replaced("moments", {"m", "v"});
  v.field("allow_unsafe", allow_unsafe, "train with a storage of weights or moments that is known to fail, to see how it does", may_change);
  v.field("offload", offload, "on a GPU: keep the moments in the host's memory, read and written over the bus once per step",
          config::OnResume::may_change);
  v.section("schedule", schedule, "how the learning rate moves", config::OnResume::may_change);
  v.section("muon", muon, "Muon's own numbers");
  for (const char* key : {"muon.momentum", "muon.update_rms"}) v.idle(key, name != "muon", "only optim.name = \"muon\" reads it");
}

StateStorage OptimizerConfig::storage() const {
  StateStorage s = storage_of(level);
  s.master = master.value_or(s.master), s.gradients = gradients.value_or(s.gradients);
  s.m = m.value_or(s.m), s.v = v.value_or(s.v);
  return s;
}

void OptimizerConfig::require_trainable() const {
  require_representable(*this);
  require_safe(*this);
}

}  // namespace octet::optim
