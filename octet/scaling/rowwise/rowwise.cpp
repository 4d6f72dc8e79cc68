#include "octet/scaling/rowwise/rowwise.hpp"

#include "octet/scaling/from_data.hpp"

namespace octet::scaling {
namespace {

class Rowwise final : public ScalesFromData {
 public:
  explicit Rowwise(const RecipeOptions& options)
      : ScalesFromData(
            formats_of("rowwise", options, "e4m3", false),
            {rule_of(options), {1, 0}, {1, 0}, options.scale == ScaleRounding::f32 ? "per-row FP32 scale" : "per-row power-of-two scale"}) {
  }
  bool takes(DType format) const override { return format == DType::e4m3; }
  bool fast_forward() const override { return true; }
};

}  // namespace

std::unique_ptr<Recipe> make_rowwise(const RecipeOptions& options) { return std::make_unique<Rowwise>(options); }

}  // namespace octet::scaling
