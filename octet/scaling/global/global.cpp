#include "octet/scaling/global/global.hpp"

#include "octet/ops/shared_scale/shared_scale.hpp"
#include "octet/scaling/from_data.hpp"
#include "octet/scaling/scale_table.hpp"

namespace octet::scaling {
namespace {

class Global final : public Recipe {
 public:
  explicit Global(const RecipeOptions& options)
      : formats_(formats_of("global", options, "e4m3", false)),
        unscaled_(options.unscaled),
        calibration_passes_(int(options.calibration)) {}

  Formats formats() const override { return formats_; }
  bool takes(DType format) const override { return format == formats_.forward; }
  std::string scales() const override { return unscaled_ ? "not scaled" : "one scale for the whole model"; }
  std::unique_ptr<Quantizer> quantizer(const Site& site, Operand operand, DType format, const SlotGroup& slots) override {
    return std::make_unique<KnownScale>(slots, scales_, Slot{site.path, operand, format, {}}, OwnMatrices{});
  }
  bool fast_forward() const override { return true; }
  int calibration_passes() const override { return unscaled_ ? 0 : calibration_passes_; }
  void allocate(Stream& stream, const SlotGroup& slots) override { scales_.allocate(stream, slots); }
  void end_step(Stream& stream, const SlotGroup& slots, const Tensor& skip) override {
    if (unscaled_) return Recipe::end_step(stream, slots, skip);
    ops::update_shared_scale(stream, {.amax = slots.amax(),
                                      .scale = scales_.scale(),
                                      .descale = scales_.descale(),
                                      .skip = skip,
                                      .format_max = format_max(formats_.forward)});
    clear(stream, slots.amax());
  }
  void visit_state(StateVisitor& visitor) override { visitor.section("scales", scales_); }
  ScaleTable* scale_table() override { return &scales_; }

 private:
  Formats formats_;
  bool unscaled_;
  int calibration_passes_;
  ScaleTable scales_;
};

}  // namespace

std::unique_ptr<Recipe> make_global(const RecipeOptions& options) { return std::make_unique<Global>(options); }

}  // namespace octet::scaling
