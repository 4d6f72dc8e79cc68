#include "octet/scaling/scale_table.hpp"

#include <algorithm>

#include "octet/scaling/from_data.hpp"

namespace octet::scaling {

void ScaleTable::allocate(Stream& stream, const SlotGroup& slots) {
  const std::int64_t n = slots.columns();
  scale_ = stream.empty({n, stride}, DType::f32, Lifetime::run, Category::quantizer_state);
  descale_ = stream.empty({n, stride}, DType::f32, Lifetime::run, Category::quantizer_state);
  format_max_ = stream.empty({n}, DType::f32, Lifetime::run, Category::quantizer_state);
  places_ = stream.empty({n}, DType::i32, Lifetime::run, Category::quantizer_state);
  const std::vector<float> ones(std::size_t(n * stride), 1.0f);
  upload(stream, ones.data(), scale_), upload(stream, ones.data(), descale_);
  std::vector<float> most;
  std::vector<std::int32_t> places;
  first_.clear();
  for (int i = 0; i < slots.size(); ++i) {
    first_.push_back(slots.column(i));
    for (std::int64_t m = 0; m < slots[i].matrices; ++m)
      most.push_back(octet::format_max(slots[i].format)), places.push_back(std::int32_t(place(i) + m));
  }
  upload(stream, most.data(), format_max_), upload(stream, places.data(), places_);
}

void ScaleTable::visit_state(StateVisitor& visitor) {
  if (scale_.shape[0] == 0) return;
  // Stacks had one scale, and none is behind it.
  const auto place = [this](std::int64_t i) {
    const auto next = std::ranges::upper_bound(first_, i / stride);
    const std::int64_t matrices = (next == first_.end() ? scale_.shape[0] : *next) - *std::prev(next);
    return (next - first_.begin() - 1) * stride + (i - *std::prev(next) * stride < matrices ? 0 : 1);
  };
  const EarlierForm one_per_slot{{std::ssize(first_), stride}, place};
  visitor.changed("scale", scale_, one_per_slot), visitor.changed("descale", descale_, one_per_slot);
}

ops::QuantizeSpec KnownScale::spec(const Pass& pass) const {
  ops::QuantizeSpec out;
  out.format = format_, out.rows = block_, out.cols = block_.transposed();
  out.scale = scales_.scale(slot_, own_), out.descale = scales_.descale(slot_, own_);
  if (pass.records()) slots_.record(slot_, own_, pass, out);
  return out;
}

}  // namespace octet::scaling
