#include "octet/config/field_list.hpp"

#include <algorithm>
#include <cmath>

#include "octet/base/check.hpp"
#include "octet/config/value_text.hpp"

namespace octet::config {
namespace {

bool well_formed(std::string_view name) {
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

class Gatherer final : public FieldVisitor {
 public:
  Section root{"", ""};

  void field(std::string_view name, bool& value, std::string_view help) override { add(name, help, &value); }
  void field(std::string_view name, std::int64_t& value, std::string_view help, Range range) override { add(name, help, &value, range); }
  void field(std::string_view name, double& value, std::string_view help, Range range) override { add(name, help, &value, range); }
  void field(std::string_view name, std::string& value, std::string_view help) override { add(name, help, &value); }
  void field(std::string_view name, std::vector<std::string>& value, std::string_view help) override { add(name, help, &value); }
  void choice(std::string_view name, std::string& value, std::string_view help, std::vector<std::string> names) override {
    check(!names.empty(), "config key `{}`: a choice needs a name to choose", name);
    add(name, help, &value, {}, std::move(names));
  }

 protected:
  void enumeration(std::string_view name, EnumSlot value, std::string_view help, std::vector<std::string> names,
                   std::vector<std::int64_t> values) override {
    check(!names.empty(), "config key `{}`: a choice needs a name to choose", name);
    add(name, help, value, {}, std::move(names), std::move(values));
  }
  void enter(std::string_view name, std::string_view help) override {
    Section section{new_key(name), std::string(help)};
    open_.push_back(here().sections.size());
    // The place is kept as indices: pointers would not survive the next push_back.
    Section* parent = &root;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) parent = &parent->sections[open_[i]];
    parent->sections.push_back(std::move(section));
  }
  void leave() override { open_.pop_back(); }

 private:
  std::vector<std::size_t> open_;

  Section& here() {
    Section* section = &root;
    for (const auto i : open_) section = &section->sections[i];
    return *section;
  }

  std::string new_key(std::string_view name) {
    const Section& section = here();
    const std::string key = (section.key.empty() ? "" : section.key + ".") + std::string(name);
    check(well_formed(name), "config key `{}`: a name must be of a-z, 0-9 and _", key);
    check(!find_field(section, key) && !find_section(section, key), "config key `{}` stands in the list twice", key);
    return key;
  }

  void add(std::string_view name, std::string_view help, Slot slot, Range range = {}, std::vector<std::string> names = {},
           std::vector<std::int64_t> enumerators = {}) {
    Field field{std::string(name), new_key(name), std::string(help), slot, range, std::move(names), std::move(enumerators)};
    Value value = value_of(field);
    check(accept(field, value), "config key `{}` must be {}, but holds {}", field.key, wanted_text(field), value_text(value));
    here().fields.push_back(std::move(field));
  }
};

bool within(double x, const Range& r) { return std::isfinite(x) && x >= r.at_least && x > r.above && x <= r.at_most && x < r.below; }

std::string bound_text(double x) {
  const std::string text = number_text(x);
  return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

/// " >= 1", " in (0, 1]", "".
std::string range_text(const Range& r) {
  const bool open_low = r.above >= r.at_least, open_high = r.below <= r.at_most;
  const double low = open_low ? r.above : r.at_least, high = open_high ? r.below : r.at_most;
  if (std::isinf(low) && std::isinf(high)) return "";
  if (std::isinf(high)) return (open_low ? " > " : " >= ") + bound_text(low);
  if (std::isinf(low)) return (open_high ? " < " : " <= ") + bound_text(high);
  return (open_low ? " in (" : " in [") + bound_text(low) + ", " + bound_text(high) + (open_high ? ")" : "]");
}

template <class T>
bool points_to(const Slot& slot) {
  return std::holds_alternative<T*>(slot);
}

}  // namespace

Section gather(Ref config) {
  Gatherer gatherer;
  config.fields(gatherer);
  return std::move(gatherer.root);
}

Section gather(ConstRef config) {
  Gatherer gatherer;
  config.fields(gatherer);
  return std::move(gatherer.root);
}

const Field* find_field(const Section& section, std::string_view key) {
  for (const auto& field : section.fields) {
    if (field.key == key) return &field;
  }
  for (const auto& inner : section.sections) {
    if (const Field* found = find_field(inner, key)) return found;
  }
  return nullptr;
}

const Section* find_section(const Section& section, std::string_view key) {
  if (section.key == key) return &section;
  for (const auto& inner : section.sections) {
    if (const Section* found = find_section(inner, key)) return found;
  }
  return nullptr;
}

std::vector<const Field*> all_fields(const Section& section) {
  std::vector<const Field*> out;
  for (const auto& field : section.fields) out.push_back(&field);
  for (const auto& inner : section.sections) {
    const auto more = all_fields(inner);
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

Value value_of(const Field& field) {
  if (const auto* slot = std::get_if<EnumSlot>(&field.slot)) {
    const auto at = std::find(field.enumerators.begin(), field.enumerators.end(), slot->get(slot->object));
    if (at == field.enumerators.end()) return Foreign{"an enumerator without a name"};
    return field.names[std::size_t(at - field.enumerators.begin())];
  }
  if (const auto* p = std::get_if<bool*>(&field.slot)) return **p;
  if (const auto* p = std::get_if<std::int64_t*>(&field.slot)) return **p;
  if (const auto* p = std::get_if<double*>(&field.slot)) return **p;
  if (const auto* p = std::get_if<std::string*>(&field.slot)) return **p;
  return *std::get<std::vector<std::string>*>(field.slot);
}

bool accept(const Field& field, Value& value) {
  if (points_to<bool>(field.slot)) return std::holds_alternative<bool>(value);
  const auto clean = [](const std::string& text) { return text.find('\0') == text.npos; };
  if (points_to<std::vector<std::string>>(field.slot)) {
    const auto* list = std::get_if<std::vector<std::string>>(&value);
    return list && std::all_of(list->begin(), list->end(), clean);
  }
  const auto* integer = std::get_if<std::int64_t>(&value);
  if (points_to<std::int64_t>(field.slot)) return integer && within(double(*integer), field.range);
  if (points_to<double>(field.slot)) {
    const auto* number = std::get_if<double>(&value);
    if (!integer && !number) return false;
    const double x = integer ? double(*integer) : *number;
    if (!within(x, field.range)) return false;
    value = x;
    return true;
  }
  const auto* text = std::get_if<std::string>(&value);
  return text && clean(*text) && (field.names.empty() || std::find(field.names.begin(), field.names.end(), *text) != field.names.end());
}

void assign(const Field& field, const Value& value) {
  if (const auto* slot = std::get_if<EnumSlot>(&field.slot)) {
    const auto at = std::find(field.names.begin(), field.names.end(), std::get<std::string>(value));
    slot->set(slot->object, field.enumerators[std::size_t(at - field.names.begin())]);
  } else if (const auto* p = std::get_if<bool*>(&field.slot)) {
    **p = std::get<bool>(value);
  } else if (const auto* p = std::get_if<std::int64_t*>(&field.slot)) {
    **p = std::get<std::int64_t>(value);
  } else if (const auto* p = std::get_if<double*>(&field.slot)) {
    **p = std::get<double>(value);
  } else if (const auto* p = std::get_if<std::string*>(&field.slot)) {
    **p = std::get<std::string>(value);
  } else {
    *std::get<std::vector<std::string>*>(field.slot) = std::get<std::vector<std::string>>(value);
  }
}

std::string type_text(const Field& field) {
  if (!field.names.empty()) return joined(field.names, " | ");
  if (points_to<bool>(field.slot)) return "true | false";
  if (points_to<std::int64_t>(field.slot)) return "integer" + range_text(field.range);
  if (points_to<double>(field.slot)) return "number" + range_text(field.range);
  return points_to<std::string>(field.slot) ? "text" : "list of text";
}

std::string wanted_text(const Field& field) {
  if (!field.names.empty()) return (field.names.size() > 1 ? "one of " : "") + joined(field.names);
  if (points_to<bool>(field.slot)) return "true or false";
  if (points_to<std::int64_t>(field.slot)) return "an integer" + range_text(field.range);
  if (points_to<double>(field.slot)) return "a number" + range_text(field.range);
  return points_to<std::string>(field.slot) ? "text" : "a list of text";
}

}  // namespace octet::config
