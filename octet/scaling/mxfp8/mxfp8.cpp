#include "octet/scaling/mxfp8/mxfp8.hpp"

#include "octet/scaling/from_data.hpp"

namespace octet::scaling {
namespace {

class Mxfp8 final : public ScalesFromData {
 public:
  explicit Mxfp8(const RecipeOptions& options)
      : ScalesFromData(formats_of("mxfp8", options, "e4m3", true),
                       {ScaleRule::e8m0, {1, 32}, {1, 32}, "1x32 blocks, E8M0 scales rounded up"}) {}
  int multiple_of() const override { return 32; }
};

}  // namespace

std::unique_ptr<Recipe> make_mxfp8(const RecipeOptions& options) { return std::make_unique<Mxfp8>(options); }

}  // namespace octet::scaling
