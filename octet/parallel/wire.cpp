#include "octet/parallel/wire.hpp"

namespace octet::parallel {

std::string_view name(Wire w) {
  constexpr std::string_view names[] = {"stored", "f32", "bf16", "e4m3", "e4m3_shared", "e4m3_prescaled", "e4m3_postscaled"};
  return names[std::size_t(w)];
}

Wire wire_of(Wire wanted, Storage gradients) {
  if (wanted != Wire::stored) return wanted;
  switch (gradients) {
    case Storage::e4m3: return Wire::e4m3;
    case Storage::e4m3_tensor: return Wire::e4m3_shared;
    case Storage::f32: return Wire::f32;
    default: return Wire::bf16;
  }
}

bool has_shared_scale(Wire w) { return w == Wire::e4m3_shared || w == Wire::e4m3_prescaled || w == Wire::e4m3_postscaled; }

SumRoom room_of(Wire wire, ops::MuGrowth growth) {
  check(has_shared_scale(wire), "wire: {} has no shared scale", wire);
  if (wire == Wire::e4m3_prescaled) return SumRoom::prescaled;
  if (wire == Wire::e4m3_postscaled) return SumRoom::postscaled;
  return growth == ops::MuGrowth::at_zero ? SumRoom::adapted_at_zero : SumRoom::adapted_below;
}

}  // namespace octet::parallel
