#include "octet/scaling/rowwise/rowwise.hpp"

#include "octet/scaling/from_data.hpp"

namespace octet::scaling {
namespace {

class Rowwise final : public Recipe {
 public:
  explicit Rowwise(const RecipeOptions& options) : formats_(formats_of("rowwise", options, "e4m3", false)) {}
  LinearPlan plan(const Site& site, SlotTable& slots) override {
    LinearPlan plan = plan_from_data(site, slots, formats_, ScaleRule::power_of_two, {1, 0}, {1, 0});
    plan.precision += "; per-row power-of-two scale";
    plan.fast_forward = true;
    return plan;
  }

 private:
  Formats formats_;
};

}  // namespace

std::unique_ptr<Recipe> make_rowwise(const RecipeOptions& options) { return std::make_unique<Rowwise>(options); }

}  // namespace octet::scaling
