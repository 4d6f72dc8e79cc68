#pragma once

#include <array>
#include <optional>
#include <span>

#include "octet/scaling/attention_plan.hpp"

namespace octet::scaling {

/// Where the 8-bit codes of weights are: in memory from step to step in both orientations, or encoded for each GEMM, which saves 2 bytes
/// per weight.
enum class WeightCodes : std::uint8_t { cached, on_demand };
/// Precision of the projection to the vocabulary.
enum class HeadPrecision : std::uint8_t { bf16, recipe };
/// Activations that forward saves for backward besides GEMM operands: their values, or 8-bit codes where backward permits.
enum class SavedActivations : std::uint8_t { bf16, fp8 };

/// Another precision for some layers, or for some operands of them. [[recipe.rules]] in TOML.
struct PrecisionRule {
  std::string path;                   // glob over paths of layers, "layers.*.mlp.down"
  std::vector<std::string> operands;  // of "x", "w", "dy", those that it is about; empty: all
  std::string recipe = "default";     // name of a recipe; default: PrecisionConfig::recipe
  std::string format = "default";     // e4m3 | e5m2 | hybrid; default: the recipe's own
  std::string attention = "default";  // bf16 | fp8_forward | fp8, of the attention that the path matches; default: the rule is not about it

  void fields(config::FieldVisitor&);
};

/// A recipe for a whole model, and the layers that run otherwise. Holds for every recipe.
///
/// Of each operand of each layer the first of these that matches decides: keep_bf16, first, last, the rules in their order, head, and
/// `recipe` for all else. Rules without `recipe`, and recipe = "bf16", do nothing in a model whose recipe does not quantize.
struct PrecisionConfig {
  std::string recipe = "bf16";
  RecipeOptions options;
  std::vector<PrecisionRule> rules;
  std::vector<PrecisionRule> meanwhile;  // of recovery, for some steps: they decide before all others. No key
  std::vector<std::string> keep_bf16;    // layers whose path matches one of these globs ("layers.*.mlp.down")
  std::int64_t first = 0, last = 0;      // this many blocks at the start and the end stay in BF16
  WeightCodes weights = WeightCodes::cached;
  bool fast_accumulation = true;  // GPU, per-tensor and row-wise scales: forward GEMMs sum in the tensor core's short accumulator
  bool emulation = false;         // codes that the device does not multiply as they are may be decoded first; else such a run is refused
  HeadPrecision head = HeadPrecision::bf16;
  SavedActivations activations = SavedActivations::bf16;
  AttentionPrecision attention = AttentionPrecision::bf16;
  std::string final_recipe = "none";  // takes the place of `recipe` in the last steps of a run; none: `recipe` stays; or bf16_forward
  double final_share = 0.1;           // of the steps, that are these
  bool forward_values = false;        // forward products of layers with codes read BF16 values, backward's the codes. No key
  bool frozen_weights = false;        // no step changes them: they are quantized once, and never measured. No key

  void fields(config::FieldVisitor&);
};

/// Whether the last steps of a run have another recipe.
bool has_final_part(const PrecisionConfig&);
/// The final recipe of this name is no recipe: forward products alone are in BF16.
inline constexpr std::string_view bf16_forward = "bf16_forward";
/// The configuration of these: the final recipe in the place of the own one, in that recipe's own format; all else as before. Without a
/// final part the same. Under bf16_forward the own recipe in backward alone. Throws ConfigError where activations between layers would
/// change their type, or no linear layer has codes that backward could keep.
PrecisionConfig final_part(const PrecisionConfig&);

/// Whether some attention of the model may have 8-bit operands.
bool codes_attention(const PrecisionConfig&);
/// Whether a configuration names 8-bit formats of linear layers or of attention: not fp32 or bf16 alone.
bool names_eight_bits(const PrecisionConfig&);

/// The state of one quantizer, which its recipe keeps from step to step.
struct QuantizerState {
  Slot slot;
  std::vector<float> maxima;                        // the rows of its history, of a maximum per matrix each
  std::vector<float> scales = {1}, descales = {1};  // of recipes with known scales: one per matrix
};

/// One line of the plan "layer -> precision -> why".
struct PlanRow {
  std::string path;
  std::int64_t out = 0, in = 0;  // 0, 0 unless it is a linear layer
  std::string precision, why;
  bool by_recipe = false;   // a linear layer whose operands are all as the model's recipe says
  bool eight_bits = false;  // of some operand
  bool unfit = false;       // its shape keeps it from the precision that was chosen
  bool attention = false;   // it is attention, not a linear layer
};

/// Decides, before the first step, in which precision each linear layer runs; afterwards holds the state of all quantizers. Nothing
/// falls back silently: every exception is a row of plan() with its reason. Outlives the model made with it.
class Precision {
 public:
  /// Throws ConfigError on unknown recipes, options that a recipe does not have, negative counts, and rules that say nothing or ask for
  /// what there is not.
  explicit Precision(const PrecisionConfig&);

  /// The plan for one layer: the recipe's, or BF16 with the reason. Called by the layers as they are made.
  LinearPlan plan(const Site&);
  /// The same for the attention of a block; a row, where some attention may have 8-bit operands.
  AttentionPlan plan_attention(const Site&);
  /// How forward saves an activation of `width` columns for backward: the quantizer of its codes, by ops::saved_spec(), or null for its
  /// values. `recorded`: forward saves it, so its codes get a slot; otherwise backward recomputes it.
  std::unique_ptr<Quantizer> plan_saved(const std::string& path, std::int64_t width, bool recorded);
  /// The same for an activation whose values are saved in any case, with the reason.
  void plan_saved_values(const std::string& path, const std::string& why);
  /// How a layer's adapter reads its matrices: in the type of activations, with a row of the plan for the first of them.
  std::unique_ptr<Quantizer> plan_adapter(const std::string& path, std::int64_t rank);
  std::unique_ptr<Quantizer> plan_adapter_weight() const;
  /// Binds the memory of tables and scales. Call once, after the model is made.
  void allocate(Stream&);
  /// After each optimizer step; skip: f32 [1] on the device.
  void end_step(Stream&, const Tensor& skip);
  /// Passes over micro-batches, forward and backward, each ended by end_step(), that scales want before the first step: as many as it
  /// takes until tensors quantized with wrong scales no longer influence the maxima of others. 0: no scale comes from past
  /// maxima.
  int calibration_passes() const;
  /// Of all quantizers, in the order of slots(). Waits for the stream.
  std::vector<QuantizerState> quantizer_states(Stream&) const;
  /// Sets those of the same path, operand, format and blocks. One scale of a stack becomes that of each of its matrices, and the other way
  /// round the least of these becomes the one. Returns how many quantizers have none among them, and are as in a new run.
  int set_quantizer_states(Stream&, std::span<const QuantizerState>);
  /// The maxima, the state of the model's recipe, and under its name that of each other recipe.
  void visit_state(StateVisitor& visitor);

  /// Whether some attention has 8-bit operands.
  bool codes_attention() const { return scaling::codes_attention(config_); }
  DType activations() const { return members_[0].recipe->activations(); }
  const std::string& recipe() const { return config_.recipe; }
  const std::vector<PlanRow>& rows() const { return rows_; }
  SlotTable& slots() { return slots_; }
  const SlotTable& slots() const { return slots_; }

  /// After the model is made: throws ConfigError, with the nearest path and all that there are, when a pattern of keep_bf16 or a rule
  /// matches no layer, and when a rule matches only what others before it decide.
  void require_patterns_used() const;

 private:
  /// A recipe in use and its quantizers' slots.
  struct Member {
    std::string name;
    std::unique_ptr<Recipe> recipe;
    SlotGroup slots;

    void visit_state(StateVisitor& visitor) { recipe->visit_state(visitor); }
  };
  /// The effect of an entry of keep_bf16, first, last, head or a rule.
  struct Rule {
    enum class Layers : std::uint8_t { path, first, last, head };
    Layers layers;
    std::string pattern = {};                          // of a path
    std::int64_t blocks = 0;                           // of first and last
    std::array<bool, 3> operands = {1, 1, 1};          // x, w, dy
    int member = -1;                                   // -1: BF16
    std::string format = "default", reason, key = {};  // key: of the pattern, as messages name it
    std::optional<AttentionPrecision> attention = {};  // none: it is not about attention, unless it keeps layers in BF16
    bool linear = true;                                // it is about linear layers
    bool matched = false, decided = false;             // some layer
    bool must_decide = false;

    bool matches(const Site&) const;
  };
  /// The recipe of one operand; `rule` is null for the model's recipe.
  struct Choice {
    int member = 0;
    DType format = DType::bf16;
    const Rule* rule = nullptr;
  };

  int member_named(const std::string& recipe, const std::string& key);
  Rule translated(const PrecisionRule&, const std::string& key, const std::string& reason);
  void plan_for_attention();
  AttentionPrecision attention_at(const Site&, std::string& why);
  std::array<Choice, 3> choices(const Site&);
  LinearPlan plan_router(const Site&);
  std::string unfit(const Site&, const std::array<Choice, 3>&) const;
  std::string precision_text(const Site&, const std::array<Choice, 3>&) const;
  std::string reason_text(const std::array<Choice, 3>&) const;
  bool quantizes(const Choice& c) const { return c.member >= 0 && is_fp8(c.format); }

  PrecisionConfig config_;
  SlotTable slots_;
  std::vector<Member> members_;                   // the model's recipe first
  SlotGroup saved_;                               // of saved activations
  std::vector<Rule> rules_;                       // the first that matches decides
  int attention_given_ = 0, attention_made_ = 0;  // recipes of attention's operands, where there are codes
  std::vector<PlanRow> rows_;
};

/// "layers.3.mlp.down" -> "layers.*.mlp.down": the pattern of the same layer in every block.
std::string pattern_of(const std::string& path);

}  // namespace octet::scaling
