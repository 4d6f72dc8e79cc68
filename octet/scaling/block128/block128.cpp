#include "octet/scaling/block128/block128.hpp"

#include "octet/scaling/from_data.hpp"

namespace octet::scaling {
namespace {

class Block128 final : public ScalesFromData {
 public:
  explicit Block128(const RecipeOptions& options)
      : ScalesFromData(formats_of("block128", options, "e4m3", true),
                       {rule_of(options),
                        {1, 128},
                        {128, 128},
                        options.scale == ScaleRounding::f32 ? "x and dy 1x128, w 128x128, FP32 scales"
                                                            : "x and dy 1x128, w 128x128, power-of-two scales"}) {}
};

}  // namespace

std::unique_ptr<Recipe> make_block128(const RecipeOptions& options) { return std::make_unique<Block128>(options); }

}  // namespace octet::scaling
