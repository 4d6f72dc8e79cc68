#include "octet/scaling/current/current.hpp"

#include "octet/scaling/from_data.hpp"

namespace octet::scaling {
namespace {

class Current final : public ScalesFromData {
 public:
  explicit Current(const RecipeOptions& options)
      : ScalesFromData(formats_of("current", options, "hybrid", true),
                       {ScaleRule::quotient, {}, {}, "per-tensor scale from its own maximum"}) {}
  bool fast_forward() const override { return true; }
};

}  // namespace

std::unique_ptr<Recipe> make_current(const RecipeOptions& options) { return std::make_unique<Current>(options); }

}  // namespace octet::scaling
