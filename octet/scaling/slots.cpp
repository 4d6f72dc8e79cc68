#include "octet/scaling/slots.hpp"

#include <algorithm>
#include <numeric>

namespace octet::scaling {

std::string_view name(Operand o) {
  constexpr std::string_view names[] = {"x", "w", "dy", "saved", "q", "k", "v", "p", "o", "do", "dp", "dq", "dk", "dv"};
  return names[std::size_t(o)];
}

int SlotGroup::add(Slot slot) const {
  SlotTable& t = *table_;
  check(!t.history_, "slots: {}.{} comes after allocate()", slot.path, name(slot.operand));
  t.slots_.insert(t.slots_.begin() + first() + size(), std::move(slot));
  return t.sizes_[group_]++;
}

int SlotGroup::size() const { return table_->sizes_[group_]; }
int SlotGroup::first() const { return std::accumulate(table_->sizes_.begin(), table_->sizes_.begin() + std::ptrdiff_t(group_), 0); }
const Slot& SlotGroup::operator[](int slot) const { return table_->slots_[std::size_t(first() + slot)]; }
std::int64_t SlotGroup::columns() const { return table_->column(first() + size()) - first_column(); }
std::int64_t SlotGroup::first_column() const { return table_->column(first()); }
std::int64_t SlotGroup::column(int slot) const { return table_->column(first() + slot) - first_column(); }
Tensor SlotGroup::amax() const {
  return size() == 0 ? Tensor{.shape = {0}, .dtype = DType::f32} : table_->amax().rows(first_column(), columns());
}
Tensor SlotGroup::history() const { return table_->history_; }

void SlotGroup::record(int slot, const OwnMatrices& own, const Pass& pass, ops::QuantizeSpec& spec) const {
  const int at = first() + slot;
  spec.amax = table_->amax(at).rows(own.first, own.count), spec.health = table_->health(at), spec.count = pass.count,
  spec.measure_noise = pass.measure_noise;
}

SlotGroup SlotTable::group() {
  sizes_.push_back(0);
  return {*this, sizes_.size() - 1};
}

void SlotTable::allocate(Stream& stream, int history_length) {
  check(history_length >= 1, "slots: history_length must be at least 1, got {}", history_length);
  columns_ = {0};
  for (const Slot& s : slots_) columns_.push_back(columns_.back() + s.matrices);
  history_ = stream.zeros({history_length, column(size())}, DType::f32, Lifetime::run, Category::quantizer_state);
  health_ = stream.zeros({size() * std::int64_t(sizeof(ops::QuantizeHealth))}, DType::u8, Lifetime::run, Category::quantizer_state);
}

int SlotTable::slot_of(std::int64_t column) const { return int(std::ranges::upper_bound(columns_, column) - columns_.begin()) - 1; }

Tensor SlotTable::amax() const { return history_.rows(0, 1).reshaped({column(size())}); }
Tensor SlotTable::amax(int slot) const { return amax().rows(column(slot), slots_[std::size_t(slot)].matrices); }

ops::QuantizeHealth* SlotTable::health(int slot) const { return health_ ? health_.as<ops::QuantizeHealth>() + slot : nullptr; }

void SlotTable::clear_health(Stream& stream) { clear(stream, health_); }

void SlotTable::clear_measurements(Stream& stream) { clear(stream, amax()), clear_health(stream); }

void SlotTable::visit_state(StateVisitor& visitor) {
  if (size() == 0) return;
  const auto place = [this](std::int64_t i) { return i / column(size()) * size() + slot_of(i % column(size())); };
  visitor.changed("amax_history", history_, {{history_.shape[0], size()}, place});  // stacks had one maximum
}

}  // namespace octet::scaling
