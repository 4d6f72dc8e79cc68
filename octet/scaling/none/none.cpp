#include "octet/scaling/none/none.hpp"

#include "octet/scaling/from_data.hpp"

namespace octet::scaling {
namespace {

class None final : public Recipe {
 public:
  explicit None(DType dtype) : dtype_(dtype) {}
  Formats formats() const override { return {dtype_, dtype_}; }
  bool takes(DType) const override { return false; }
  std::string scales() const override { return ""; }
  std::unique_ptr<Quantizer> quantizer(const Site&, Operand, DType, const SlotGroup&) override {
    return std::make_unique<Unquantized>(dtype_);
  }
  DType activations() const override { return dtype_; }
  int multiple_of() const override { return 1; }

 private:
  DType dtype_;
};

}  // namespace

std::unique_ptr<Recipe> make_bf16(const RecipeOptions&) { return std::make_unique<None>(DType::bf16); }
std::unique_ptr<Recipe> make_fp16(const RecipeOptions&) { return std::make_unique<None>(DType::f16); }
std::unique_ptr<Recipe> make_fp32(const RecipeOptions&) { return std::make_unique<None>(DType::f32); }

}  // namespace octet::scaling
