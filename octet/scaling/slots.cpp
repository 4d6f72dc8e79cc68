#include "octet/scaling/slots.hpp"

namespace octet {

std::string_view name(Operand o) { return o == Operand::activation ? "x" : o == Operand::weight ? "w" : "dy"; }

int SlotTable::add(Slot slot) {
  check(!history_, "slots: {}.{} comes after allocate()", slot.path, name(slot.operand));
  slots_.push_back(std::move(slot));
  return int(slots_.size()) - 1;
}

void SlotTable::allocate(Stream& stream, int history_length) {
  check(history_length >= 1, "slots: history_length must be at least 1, got {}", history_length);
  history_ = stream.zeros({history_length, size()}, DType::f32, Lifetime::run, Category::quantizer_state);
  health_ = stream.zeros({size() * std::int64_t(sizeof(ops::QuantizeHealth))}, DType::u8, Lifetime::run, Category::quantizer_state);
}

Tensor SlotTable::amax() const { return history_.rows(0, 1).reshaped({size()}); }
Tensor SlotTable::amax(int slot) const { return amax().rows(slot, 1); }

ops::QuantizeHealth* SlotTable::health(int slot) const { return health_ ? health_.as<ops::QuantizeHealth>() + slot : nullptr; }

void SlotTable::record(int slot, const Pass& pass, ops::QuantizeSpec& spec) const {
  spec.amax = amax(slot), spec.health = health(slot), spec.count = pass.count, spec.measure_noise = pass.measure_noise;
}

void SlotTable::clear_health(Stream& stream) { clear(stream, health_); }

void SlotTable::clear_measurements(Stream& stream) { clear(stream, amax()), clear_health(stream); }

void SlotTable::visit_state(StateVisitor& visitor) {
  if (size() > 0) visitor.state("amax_history", history_);
}

}  // namespace octet
