#pragma once

#include "octet/ops/route/route.hpp"
#include "octet/scaling/pass.hpp"
#include "octet/tensor/state.hpp"

namespace octet::nn {

/// What keeps the experts of a model in balance. With counts c_e of the choices and sums s_e of the scores of E experts, K of which each
/// token chooses, over n tokens, a loss is
///
///   E sum_e (c_e / n)(s_e / n)            over `model`: of the tokens of all layers of a micro-batch together; over `layer`: of each
///                                         layer's tokens, the mean over layers. K at balance
///   E / K sum_e (c_e / n)(s_e / n)        over `sequence`: of each sequence in each layer, the mean over sequences, the sum over layers.
///                                         1 at balance
///
/// Gradients are those of the scores alone. Sources: Fedus et al. 2022, eq. 4, as transformers computes it for Mixtral, Qwen3-MoE and OLMoE;
/// DeepSeek-AI 2024, "DeepSeek-V3 Technical Report", eq. 17 to 20.
struct Balance {
  enum class Over : std::uint8_t { model, layer, sequence } over = Over::model;
  double loss = 0;       // coefficient of this loss; 0: none
  double z_loss = 0;     // of the mean over tokens, and sum over layers, of the squared log of the sum of exp(logits). Zoph et al. 2022
  double bias_rate = 0;  // step of each expert's bias after a step: ops::balance_bias
  bool operator==(const Balance&) const = default;
};

/// The routers of a model: loads of a step, the losses that balance them, and biases. Of a model without experts it has no memory, and does
/// nothing.
class Routers {
 public:
  struct Config {
    std::int64_t layers = 0;  // with experts
    std::int64_t experts = 0, choices = 0;
    Balance balance = {};
  };
  /// What the routers of one micro-batch share.
  struct MicroBatch {
    const Routers* all = nullptr;
    std::int64_t tokens = 0;
    Tensor counts, sums;        // f32 [n, S, E]: of all layers together, or of each; of S sequences, or of all together
    float factor = 0;           // of the loss, in which each token has it
    Tensor loss_scale = {};     // f32 [1] or empty
    bool records = false;       // into the loads of the step

    explicit operator bool() const { return all != nullptr; }
  };

  Routers() = default;
  explicit Routers(const Config& config) : config_(config) {}

  /// Tables, in the run's region.
  void allocate(Stream&);
  /// Before the forward of a micro-batch, in the pass's region: zeros.
  MicroBatch begin(Stream&, const scaling::Pass&, std::int64_t tokens, std::int64_t sequences, float factor, const Tensor& loss_scale) const;
  /// Of a pass without backward.
  MicroBatch evaluating() const { return {.all = this}; }

  /// f32 [E], or empty; of the layer's router, counted among those with experts.
  Tensor bias(std::int64_t layer) const;
  /// Adds a layer's choices to the loads, if the micro-batch records.
  void add(Stream&, const MicroBatch&, std::int64_t layer, const Tensor& chosen, const Tensor& scores) const;
  /// The loss's gradient of a layer's scores, in scratch; empty if there is none.
  Tensor score_gradient(Stream&, const MicroBatch&, std::int64_t layer) const;
  /// The factor of squared logs of each token's logits; for gradients without a loss scale.
  float z_factor(const MicroBatch& m) const { return float(config_.balance.z_loss) * m.factor; }

  std::int64_t layers() const { return config_.layers; }
  const Config& config() const { return config_; }
  /// Of this step so far, over micro-batches: f32 [layers, E] each. Empty without experts.
  const Tensor& counts() const { return counts_; }
  const Tensor& sums() const { return sums_; }
  /// f32 [layers, E]; empty without bias_rate.
  const Tensor& biases() const { return biases_; }
  /// After each optimizer step, when the counts are those of all ranks. skip: f32 [1].
  void end_step(Stream&, const Tensor& skip);
  /// Before each step.
  void clear_loads(Stream&);
  void visit_state(StateVisitor&);

 private:
  bool has_loss() const { return config_.layers > 0 && config_.balance.loss > 0; }
  float score_factor(const MicroBatch&) const;

  Config config_;
  Tensor counts_, sums_, biases_;
};

}  // namespace octet::nn
