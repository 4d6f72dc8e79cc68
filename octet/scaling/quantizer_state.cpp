#include <algorithm>

#include "octet/scaling/precision.hpp"
#include "octet/scaling/scale_table.hpp"

namespace octet::scaling {
namespace {

std::vector<float> values_of(Stream& stream, const Tensor& t) {
  std::vector<float> out(std::size_t(t.count()));
  if (!out.empty()) download(stream, t, out.data());
  return out;
}

bool same(const Slot& a, const Slot& b) { return a.path == b.path && a.operand == b.operand && a.format == b.format && a.block == b.block; }

}  // namespace

std::vector<QuantizerState> Precision::quantizer_states(Stream& stream) const {
  const std::size_t n = std::size_t(slots_.size());
  std::vector<QuantizerState> out;
  for (const Slot& slot : slots_.slots()) out.push_back({.slot = slot, .maxima = {}});
  const std::vector<float> history = values_of(stream, slots_.history());
  for (std::size_t i = 0; i < history.size(); ++i) out[i % n].maxima.push_back(history[i]);
  for (const Member& m : members_) {
    ScaleTable* const scales = m.recipe->scale_table();
    if (scales == nullptr || m.slots.size() == 0) continue;
    const std::vector<float> scale = values_of(stream, scales->scale()), descale = values_of(stream, scales->descale());
    for (std::size_t i = 0; i < std::size_t(m.slots.size()); ++i) {
      QuantizerState& q = out[std::size_t(m.slots.first()) + i];
      q.scale = scale[i * ScaleTable::stride], q.descale = descale[i * ScaleTable::stride];
    }
  }
  return out;
}

int Precision::set_quantizer_states(Stream& stream, std::span<const QuantizerState> states) {
  const std::size_t n = std::size_t(slots_.size());
  if (n == 0) return 0;
  std::vector<const QuantizerState*> from;
  for (const Slot& slot : slots_.slots()) {
    const auto found = std::ranges::find_if(states, [&](const QuantizerState& q) { return same(q.slot, slot); });
    from.push_back(found == states.end() ? nullptr : &*found);
  }
  std::vector<float> history = values_of(stream, slots_.history());
  for (std::size_t i = 0; i < history.size(); ++i)
    if (const QuantizerState* q = from[i % n]; q != nullptr && i / n < q->maxima.size()) history[i] = q->maxima[i / n];
  upload(stream, history.data(), slots_.history());
  for (const Member& m : members_) {
    ScaleTable* const scales = m.recipe->scale_table();
    if (scales == nullptr || m.slots.size() == 0) continue;
    std::vector<float> scale = values_of(stream, scales->scale()), descale = values_of(stream, scales->descale());
    for (std::size_t i = 0; i < std::size_t(m.slots.size()); ++i)
      if (const QuantizerState* q = from[std::size_t(m.slots.first()) + i]; q != nullptr)
        scale[i * ScaleTable::stride] = q->scale, descale[i * ScaleTable::stride] = q->descale;
    upload(stream, scale.data(), scales->scale()), upload(stream, descale.data(), scales->descale());
  }
  return int(std::ranges::count(from, nullptr));
}

}  // namespace octet::scaling
