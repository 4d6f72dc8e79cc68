#pragma once

#include "octet/scaling/recipe.hpp"

namespace octet {

/// Where the 8-bit codes of weights are: in memory from step to step in both orientations, or encoded for each GEMM, which saves 2 bytes
/// per weight.
enum class WeightCodes : std::uint8_t { cached, on_demand };
/// Precision of the projection to the vocabulary.
enum class HeadPrecision : std::uint8_t { bf16, recipe };

/// A recipe for a whole model, and the layers exempt from it. Holds for every recipe.
struct PrecisionConfig {
  std::string recipe = "bf16";
  RecipeOptions options;
  std::vector<std::string> keep_bf16;  // layers whose path matches one of these globs ("layers.*.mlp.down")
  std::int64_t first = 0, last = 0;    // this many blocks at the start and the end stay in BF16
  WeightCodes weights = WeightCodes::cached;
  bool fast_accumulation = true;  // GPU, per-tensor and row-wise scales: forward GEMMs sum in the tensor core's short accumulator
  bool emulation = false;         // codes that the device does not multiply as they are may be decoded first; else such a run is refused
  HeadPrecision head = HeadPrecision::bf16;

  void fields(config::FieldVisitor&);
};

/// One line of the plan "layer -> precision -> why".
struct PlanRow {
  std::string path;
  std::int64_t out = 0, in = 0;  // 0, 0 for what is not a linear layer
  std::string precision, why;
};

/// Decides, before the first step, in which precision each linear layer runs; afterwards holds the state of all quantizers. Nothing
/// falls back silently: every exception is a row of plan() with its reason. Outlives the model made with it.
class Precision {
 public:
  /// Throws ConfigError on unknown recipes, options that the recipe does not have, and negative counts.
  explicit Precision(const PrecisionConfig&);

  /// The plan for one layer: the recipe's, or BF16 with the reason. Called by the layers as they are made.
  LinearPlan plan(const Site&);
  /// Binds the memory of tables and scales. Call once, after the model is made.
  void allocate(Stream&);
  /// After each optimizer step; skip: f32 [1] on the device.
  void end_step(Stream&, const Tensor& skip);
  /// Passes over micro-batches, forward and backward, each ended by end_step(), that scales want before the first step: as many as it
  /// takes until what is quantized under scales that do not fit yet no longer shows in the maxima of others. 0: no scale comes from past
  /// maxima.
  int calibration_passes() const { return recipe_->calibration_passes(); }
  void visit_state(StateVisitor& visitor) { slots_.visit_state(visitor), recipe_->visit_state(visitor); }

  DType activations() const { return recipe_->activations(); }
  const std::string& recipe() const { return config_.recipe; }
  const std::vector<PlanRow>& rows() const { return rows_; }
  SlotTable& slots() { return slots_; }
  const SlotTable& slots() const { return slots_; }

  /// After the model is made: throws ConfigError, with the nearest path and all that there are, when a pattern of keep_bf16 matches no
  /// layer.
  void require_patterns_used() const;

 private:
  std::string exemption(const Site&);

  PrecisionConfig config_;
  std::unique_ptr<Recipe> recipe_;
  SlotTable slots_;
  std::vector<PlanRow> rows_;
  std::vector<bool> pattern_used_;
};

/// "layers.3.mlp.down" -> "layers.*.mlp.down": the pattern of the same layer in every block.
std::string pattern_of(const std::string& path);

}  // namespace octet
