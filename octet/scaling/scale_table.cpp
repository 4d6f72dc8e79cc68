#include "octet/scaling/scale_table.hpp"

#include "octet/scaling/from_data.hpp"

namespace octet::scaling {

void ScaleTable::allocate(Stream& stream, const SlotGroup& slots) {
  const std::int64_t n = slots.size();
  scale_ = stream.empty({n, stride}, DType::f32, Lifetime::run, Category::quantizer_state);
  descale_ = stream.empty({n, stride}, DType::f32, Lifetime::run, Category::quantizer_state);
  format_max_ = stream.empty({n}, DType::f32, Lifetime::run, Category::quantizer_state);
  const std::vector<float> ones(std::size_t(n * stride), 1.0f);
  upload(stream, ones.data(), scale_), upload(stream, ones.data(), descale_);
  std::vector<float> most;
  for (int i = 0; i < slots.size(); ++i) most.push_back(octet::format_max(slots[i].format));
  upload(stream, most.data(), format_max_);
}

void ScaleTable::visit_state(StateVisitor& visitor) {
  if (scale_.shape[0] > 0) visitor.state("scale", scale_), visitor.state("descale", descale_);
}

ops::QuantizeSpec KnownScale::spec(const Pass& pass) const {
  ops::QuantizeSpec out;
  out.format = format_, out.scale = scales_.scale(slot_), out.descale = scales_.descale(slot_);
  if (pass.records()) slots_.record(slot_, pass, out);
  return out;
}

}  // namespace octet::scaling
