#include <algorithm>
#include <optional>

#include "octet/scaling/precision.hpp"
#include "octet/scaling/scale_table.hpp"

namespace octet::scaling {
namespace {

std::vector<float> values_of(Stream& stream, const Tensor& t) {
  std::vector<float> out(std::size_t(t.count()));
  if (!out.empty()) download(stream, t, out.data());
  return out;
}

bool same(const Slot& a, const Slot& b) {
  return a.path == b.path && a.operand == b.operand && a.format == b.format &&
         (a.block == b.block || (a.block.whole_matrices() && b.block.whole_matrices()));
}

// Values of `from` matrices as those of `to`: the same, copies of one, or of all the one that `choose` prefers.
template <class Choose>
std::vector<float> fitted(std::span<const float> values, std::int64_t from, std::int64_t to, const Choose& choose) {
  std::vector<float> out;
  for (std::size_t row = 0; row < values.size(); row += std::size_t(from)) {
    const std::span<const float> all = values.subspan(row, std::size_t(from));
    if (from == to) out.insert(out.end(), all.begin(), all.end());
    else out.insert(out.end(), std::size_t(to), from == 1 ? all[0] : choose(all));
  }
  return out;
}
float largest(std::span<const float> x) { return std::ranges::max(x); }
float least(std::span<const float> x) { return std::ranges::min(x); }

QuantizerState fitted(const QuantizerState& q, const Slot& slot) {
  const std::int64_t from = q.slot.matrices, to = slot.matrices;
  return {.slot = slot,
          .maxima = fitted(q.maxima, from, to, largest),
          .scales = fitted(q.scales, std::ssize(q.scales), to, least),
          .descales = fitted(q.descales, std::ssize(q.descales), to, largest)};
}

// f(the slot's index in the table of slots, where its scales begin in the recipe's table) for each slot with known scales.
template <class F>
void each_scaled(ScaleTable* table, const SlotGroup& slots, const F& f) {
  for (int i = 0; table != nullptr && i < slots.size(); ++i) f(std::size_t(slots.first() + i), std::size_t(table->place(i)));
}

}  // namespace

std::vector<QuantizerState> Precision::quantizer_states(Stream& stream) const {
  std::vector<QuantizerState> out;
  const std::vector<float> history = values_of(stream, slots_.history());
  const std::size_t columns = std::size_t(slots_.column(slots_.size()));
  for (const Slot& slot : slots_.slots()) {
    out.push_back({.slot = slot, .maxima = {}});
    for (std::size_t at = std::size_t(slots_.column(int(out.size()) - 1)); at < history.size(); at += columns)
      out.back().maxima.insert(out.back().maxima.end(), &history[at], &history[at] + slot.matrices);
  }
  for (const Member& m : members_) {
    ScaleTable* const scales = m.recipe->scale_table();
    if (scales == nullptr || m.slots.size() == 0) continue;
    const std::vector<float> scale = values_of(stream, scales->scale()), descale = values_of(stream, scales->descale());
    each_scaled(scales, m.slots, [&](std::size_t slot, std::size_t place) {
      QuantizerState& q = out[slot];
      q.scales.assign(&scale[place], &scale[place] + q.slot.matrices);
      q.descales.assign(&descale[place], &descale[place] + q.slot.matrices);
    });
  }
  return out;
}

int Precision::set_quantizer_states(Stream& stream, std::span<const QuantizerState> states) {
  if (slots_.size() == 0) return 0;
  std::vector<std::optional<QuantizerState>> from;
  for (const Slot& slot : slots_.slots()) {
    const auto found = std::ranges::find_if(states, [&](const QuantizerState& q) { return same(q.slot, slot); });
    from.push_back(found == states.end() ? std::nullopt : std::optional(fitted(*found, slot)));
  }
  std::vector<float> history = values_of(stream, slots_.history());
  const std::int64_t rows = slots_.history().shape[0], columns = slots_.column(slots_.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::optional<QuantizerState>& q = from[i];
    if (!q) continue;
    const std::int64_t column = slots_.column(int(i));
    const std::int64_t n = q->slot.matrices, have = std::min(rows, std::ssize(q->maxima) / n);
    for (std::int64_t row = 0; row < have; ++row)
      std::copy_n(&q->maxima[std::size_t(row * n)], n, &history[std::size_t(row * columns + column)]);
  }
  upload(stream, history.data(), slots_.history());
  for (const Member& m : members_) {
    ScaleTable* const scales = m.recipe->scale_table();
    if (scales == nullptr || m.slots.size() == 0) continue;
    std::vector<float> scale = values_of(stream, scales->scale()), descale = values_of(stream, scales->descale());
    each_scaled(scales, m.slots, [&](std::size_t slot, std::size_t place) {
      if (!from[slot]) return;
      std::ranges::copy(from[slot]->scales, &scale[place]), std::ranges::copy(from[slot]->descales, &descale[place]);
    });
    upload(stream, scale.data(), scales->scale()), upload(stream, descale.data(), scales->descale());
  }
  return int(std::ranges::count(from, false, &std::optional<QuantizerState>::has_value));
}

}  // namespace octet::scaling
