#include "octet/scaling/current/current.hpp"

#include "octet/scaling/from_data.hpp"

namespace octet::scaling {
namespace {

class Current final : public Recipe {
 public:
  explicit Current(const RecipeOptions& options) : formats_(formats_of("current", options, "hybrid", true)) {}
  LinearPlan plan(const Site& site, SlotTable& slots) override {
    LinearPlan plan = plan_from_data(site, slots, formats_, ScaleRule::quotient, {}, {});
    plan.precision += "; per-tensor scale from its own maximum";
    plan.fast_forward = true;
    return plan;
  }

 private:
  Formats formats_;
};

}  // namespace

std::unique_ptr<Recipe> make_current(const RecipeOptions& options) { return std::make_unique<Current>(options); }

}  // namespace octet::scaling
