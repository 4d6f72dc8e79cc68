#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "octet/config/fields.hpp"
#include "octet/scaling/pass.hpp"
#include "octet/scaling/slots.hpp"

namespace octet::scaling {

/// A linear layer that asks how it shall run: y [T, out] = x [T, in] W^T.
struct Site {
  std::string path;              // in the model, such as "layers.3.mlp.down"
  std::int64_t out = 0, in = 0;  // of the weight: of all matrices of a stack
  std::int64_t matrices = 1;     // of equal numbers of rows, of which a token uses so many:
  std::int64_t used = 1;
  int layer = -1;  // index of its block; -1 outside
  int layers = 0;  // blocks of the model
  bool head = false;
  bool router = false;                // of experts: its logits choose them
  std::int64_t stack = 1, first = 0;  // matrices of a stack on all ranks, and which of them is the first here
};

/// The block of a scale of the site's weight that follows from one matrix: the tensor, or of a stack each matrix.
inline ScaleBlock block_of_matrix(const Site& site) { return {site.stack > 1 ? int(site.out / site.matrices) : 0, 0}; }
/// The slot of an operand with such blocks, and its matrices that are here.
Slot slot_of(const Site&, Operand, DType format, ScaleBlock);
inline OwnMatrices own_matrices(const Site& site, ScaleBlock block) {
  return block.whole_tensor() || !block.whole_matrices() ? OwnMatrices{} : OwnMatrices{site.first, site.matrices};
}

/// Turns one tensor of the model into GEMM operands, step after step.
class Quantizer {
 public:
  virtual ~Quantizer() = default;
  /// The specification of quantization at this moment of the run. Only a pass that records gets places for maxima and health.
  virtual ops::QuantizeSpec spec(const Pass&) const = 0;
};

/// How one linear layer runs: made before the first step, printed, stored in the run folder.
struct LinearPlan {
  std::unique_ptr<Quantizer> x, w, dy;
  bool caches_weight = true;    // the weight's codes are kept from step to step; otherwise they are encoded for each GEMM
  bool forward_values = false;  // forward multiplies BF16 values of x and w, of which backward has codes
  bool fast_forward = false;    // short tensor-core accumulator in the forward GEMM; backward's are always promoted
  std::string precision;        // "x e4m3, w e4m3, dy e5m2; per tensor"
  std::string why;
};

/// Formats of the three operands of a layer.
struct Formats {
  DType forward = DType::e4m3, gradient = DType::e4m3;
  DType of(Operand operand) const { return is_gradient(operand) ? gradient : forward; }
};

class ScaleTable;

/// A scaling scheme for linear layers of a model, or for some of their operands, with their shared state. Lives as long as the
/// model.
class Recipe {
 public:
  virtual ~Recipe() = default;
  /// The formats of operands, unless a rule gives others.
  virtual Formats formats() const = 0;
  /// Whether a rule may give an operand this 8-bit format.
  virtual bool takes(DType format) const { return is_fp8(format); }
  /// How scales come about, for the plan: "per-tensor scale from its own maximum".
  virtual std::string scales() const = 0;
  /// Makes the quantizer of one operand of a layer and registers it in `slots`, the same for every call.
  virtual std::unique_ptr<Quantizer> quantizer(const Site&, Operand, DType format, const SlotGroup& slots) = 0;
  /// How a weight that does not train is quantized, once: by its own maximum, without state and measurements.
  virtual ops::QuantizeSpec spec_of_frozen(const Site&, DType format) const;
  /// Whether the forward GEMM may sum in a short tensor-core accumulator.
  virtual bool fast_forward() const { return false; }
  /// Rows of maxima that it wants in the slot table.
  virtual int history_length() const { return 1; }
  /// See Precision::calibration_passes().
  virtual int calibration_passes() const { return 0; }
  /// Called once, after every layer has its plan and `slots` its memory.
  virtual void allocate(Stream&, const SlotGroup&) {}
  /// After each optimizer step; `skip` (f32 [1], not 0 when the step was not applied) is read on the device. Clears row 0 of the
  /// maxima of its slots in any case, and touches no others.
  virtual void end_step(Stream&, const SlotGroup& slots, const Tensor& skip);
  /// State that end_step() keeps from step to step, besides the maxima.
  virtual void visit_state(StateVisitor&) {}
  /// That state as one scale per slot; null if there is none.
  virtual ScaleTable* scale_table() { return nullptr; }
  /// Type of activations between ops.
  virtual DType activations() const { return DType::bf16; }
  /// Most rows of a weight that share a scale in one of its orientations, unless all do. Those of each matrix of a stack must be a
  /// multiple.
  virtual int rows_of_blocks() const { return 1; }
  /// Dimensions of a layer must be multiples of this to run in the recipe's precision.
  virtual int multiple_of() const { return 16; }
  /// Whether each matrix of a stack of weights has a scale of its own, where one matrix has one.
  virtual bool scales_matrices() const { return false; }
};

/// The form of a scale, the quotient of the format's largest value and a block's maximum: rounded down to a power of two, or kept as FP32.
enum class ScaleRounding : std::uint8_t { power_of_two, f32 };

/// The options of recipes. Defaults are those of the recipe's source.
struct RecipeOptions {
  std::string format = "default";  // default | hybrid (E4M3 forward, E5M2 backward) | e4m3
  std::int64_t history = 1024;     // delayed: steps of maxima
  std::string algorithm = "max";   // delayed: max | most_recent
  std::int64_t margin = 0;         // delayed: powers of two of headroom
  std::int64_t calibration = 3;    // delayed, global: passes over micro-batches before the first step

  bool unscaled = false;  // global: every scale is 1

  ScaleRounding scale = ScaleRounding::power_of_two;  // rowwise, block128

  void fields(config::FieldVisitor&);
  /// Has those idle that are not in `read`, under the recipes `names`.
  void idle_fields(config::FieldVisitor&, const std::vector<std::string_view>& read, const std::string& names) const;
};

struct RecipeEntry {
  std::string_view name, summary;
  std::unique_ptr<Recipe> (*make)(const RecipeOptions&);
  bool compared;                          // by default, in `octet compare`
  std::vector<std::string_view> options;  // of RecipeOptions, those that it reads; none: it quantizes nothing, so exemptions do nothing
};
/// All recipes, in the order of the documentation, then registered ones.
const std::vector<RecipeEntry>& recipes();
/// Adds a recipe of one's own to recipes(), so that every configuration may name it. The targets of its views must last as long as the
/// program. To be called from one thread before anything else of Octet: references that recipes() returned are void. Throws ContractError
/// when the name is empty or taken, or `make` is null. examples/add_recipe.cpp shows it.
void register_recipe(RecipeEntry);
/// Whether activations and their gradients are FP16 under that recipe, so that small gradients are lost without a loss scale. False for a
/// name that does not exist.
bool has_narrow_range(std::string_view name);
/// The names of those that are compared by default.
std::vector<std::string> compared_recipes();
/// The recipes of attention's operands in a model whose linear layers have this one: of those that are there before they are encoded, and
/// of those that attention makes, whose scales must be known before.
struct AttentionRecipes {
  std::string given, made;
};
AttentionRecipes attention_recipes(std::string_view recipe);
/// Throws ConfigError, with the nearest name and the list, when there is none of that name.
std::unique_ptr<Recipe> make_recipe(std::string_view name, const RecipeOptions&);

}  // namespace octet::scaling
