#include "octet/optim/optimizer_config.hpp"

#include <algorithm>
#include <array>

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

using For = StorageFacts::For;

// The storages of a kind of variable, as a field that the level may leave open.
template <bool For::*kind>
void choose_storage(config::FieldVisitor& v, const char* name, std::optional<Storage>& value, const char* help) {
  constexpr auto chosen = [] {
    std::array<Storage, std::ranges::count_if(storages, [](const StorageFacts& f) { return f.variables.*kind; })> out{};
    std::size_t n = 0;
    for (const StorageFacts& f : storages)
      if (f.variables.*kind) out[n++] = f.storage;
    return out;
  }();
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    v.choice(name, value, help, "level", {{facts(chosen[i]).name.data(), chosen[i]}...}, config::OnResume::may_change);
  }
  (std::make_index_sequence<chosen.size()>());
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
  choose_storage<&For::masters>(v, "master", master, "storage of weight matrices; bf16 and f16 are rounded stochastically");
  choose_storage<&For::gradients>(v, "gradients", gradients,
                                  "storage of their gradients, as summed over micro-batches; embedding and head: see coded_ends");
  choose_storage<&For::m>(v, "m", m, "storage of the first moments of matrices; e4m3 has a scale per 128 values");
  choose_storage<&For::v>(v, "v", this->v, "storage of the second moments of matrices; f16 has a scale per tensor");
  v.replaced("moments", {"m", "v"});
  v.field("coded_ends", coded_ends,
          "whether gradients of embedding and head, if these are two matrices, are stored as optim.gradients = e4m3; false: as f32",
          may_change);
  v.idle("coded_ends", storage().gradients != Storage::e4m3, "only optim.gradients = \"e4m3\" reads it");
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
