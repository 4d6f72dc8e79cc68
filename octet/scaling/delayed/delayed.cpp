#include "octet/scaling/delayed/delayed.hpp"

#include "octet/ops/amax_history/amax_history.hpp"
#include "octet/scaling/from_data.hpp"
#include "octet/scaling/scale_table.hpp"

namespace octet::scaling {
namespace {

class Delayed final : public Recipe {
 public:
  explicit Delayed(const RecipeOptions& options) : options_(options), formats_(formats_of("delayed", options, "hybrid", true)) {}

  Formats formats() const override { return formats_; }
  std::string scales() const override {
    return format("per-tensor scale, {} of {} steps", options_.algorithm == "max" ? "maximum" : "most recent", options_.history);
  }
  std::unique_ptr<Quantizer> quantizer(const Site& site, Operand operand, DType format, const SlotGroup& slots) override {
    const ScaleBlock block = operand == Operand::weight ? block_of_matrix(site) : ScaleBlock{};
    return std::make_unique<KnownScale>(slots, scales_, slot_of(site, operand, format, block), own_matrices(site, block));
  }
  bool scales_matrices() const override { return true; }
  bool fast_forward() const override { return true; }
  int history_length() const override { return int(options_.history); }
  int calibration_passes() const override { return int(options_.calibration); }
  void allocate(Stream& stream, const SlotGroup& slots) override { scales_.allocate(stream, slots); }
  void end_step(Stream& stream, const SlotGroup& slots, const Tensor& skip) override {
    ops::advance_amax_history(stream, {.history = slots.history(),
                                       .first = slots.first_column(),
                                       .scale = scales_.scale(),
                                       .descale = scales_.descale(),
                                       .places = scales_.places(),
                                       .format_max = scales_.format_max(),
                                       .skip = skip,
                                       .margin = int(options_.margin),
                                       .choice = options_.algorithm == "max" ? ops::AmaxChoice::max : ops::AmaxChoice::most_recent});
  }
  void visit_state(StateVisitor& visitor) override { visitor.section("scales", scales_); }
  ScaleTable* scale_table() override { return &scales_; }

 private:
  RecipeOptions options_;
  Formats formats_;
  ScaleTable scales_;
};

}  // namespace

std::unique_ptr<Recipe> make_delayed(const RecipeOptions& options) { return std::make_unique<Delayed>(options); }

}  // namespace octet::scaling
