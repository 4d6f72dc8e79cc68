#include "octet/scaling/none/none.hpp"

#include "octet/scaling/from_data.hpp"

namespace octet::scaling {
namespace {

class None final : public Recipe {
 public:
  explicit None(DType dtype) : dtype_(dtype) {}
  LinearPlan plan(const Site&, SlotTable&) override { return plan_unquantized(dtype_, ""); }
  DType activations() const override { return dtype_; }
  int multiple_of() const override { return 1; }

 private:
  DType dtype_;
};

}  // namespace

std::unique_ptr<Recipe> make_bf16(const RecipeOptions&) { return std::make_unique<None>(DType::bf16); }
std::unique_ptr<Recipe> make_fp32(const RecipeOptions&) { return std::make_unique<None>(DType::f32); }

}  // namespace octet::scaling
