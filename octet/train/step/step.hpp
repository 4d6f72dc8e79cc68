#pragma once

#include <functional>
#include <span>

#include "octet/data/windows.hpp"
#include "octet/train/step/engine.hpp"
#include "octet/train/step/upload.hpp"

namespace octet::train {

/// Of all micro-batches of a step.
std::int64_t tokens_of(std::span<const data::Batch> micro_batches);

/// A part of a step, in their order; micro_batch is repeated.
enum class StepPhase : std::uint8_t { micro_batch, results, update, read_out, next_codes };
constexpr std::string_view name(StepPhase p) {
  constexpr std::string_view names[] = {"forward and backward", "results of all ranks", "optimizer", "read-out", "scales and codes"};
  return names[std::size_t(p)];
}

/// Is told where a step is, by the host: on a GPU queued work of earlier parts may still run.
class PhaseListener {
 public:
  virtual ~PhaseListener() = default;
  virtual void begins(StepPhase) = 0;
  /// A piece of a pass that takes turns with another has ended: parallel::Turns::Piece.
  virtual void piece(const std::string& /*pass*/, std::string_view /*piece*/, double /*begin*/, double /*end*/) {}
};

struct StepOptions {
  double learning_rate = 0;
  optim::StepLimits limits{};   // beyond which the step is skipped
  bool measure = false;         // also SQNR of every quantizer and the norm of all parameters
  bool measure_next = false;    // the next step measures: weights are quantized for it at the end of this one
  bool (*stopped)() = nullptr;  // asked between micro-batches whether to abandon this step
  PhaseListener* listener = nullptr;
  std::function<void()> before_update{};  // returns when weights and moments may change
};

/// The training steps of one engine, from initialized or loaded weights on. Owns the order of a step: forward and
/// backward of every micro-batch, gradient clipping, update, read-out, the next step's scales and codes. The engine outlives it; one
/// runner per engine.
class StepRunner {
 public:
  /// Quantizes the weights for the first time. Make it after they are initialized, loaded or restored.
  explicit StepRunner(Engine&);

  /// Before the first step of a new run: passes over its micro-batches, as many as the recipe wants, from which scales begin that come
  /// from past maxima. `next` gives these in their order, of one shape; of the step's `accumulate` only those that are used are asked
  /// for. Leaves no gradient, loss or count behind. `stopped` is asked before each pass whether to give up: then false, and scales come
  /// from some passes only.
  bool calibrate(std::int64_t accumulate, const std::function<data::Batch()>& next, bool (*stopped)() = nullptr);

  /// One optimizer step. The loss is the mean over all its targets; stored gradients are those of its sum divided by the number of tokens,
  /// and the optimizer corrects them where documents are masked (Engine::gradient_factor). `read` runs when the update is done and the
  /// step's results (loss, norm, skip flag, maxima, health, gradients) are still in the engine's tables; then scales and codes of the next
  /// step are made and gradients are cleared. False when it was stopped before its last micro-batch began: the engine is then as before the
  /// step, and `read` was not called.
  bool run(std::span<const data::Batch> micro_batches, const StepOptions&, const std::function<void()>& read = {});

 private:
  void clear_sums();
  void quantize_weights(bool measured);
  void quantize_weights_again();
  void sum_results();
  void sum_maxima();
  void update(const StepOptions&);

  Engine& engine_;
};

}  // namespace octet::train
