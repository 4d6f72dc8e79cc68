#include "octet/scaling/recipe.hpp"

namespace octet {

void Recipe::end_step(Stream& stream, SlotTable& slots, const Tensor&) { clear(stream, slots.amax()); }

}  // namespace octet
