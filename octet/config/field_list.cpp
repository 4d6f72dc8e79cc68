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

  void field(std::string_view name, bool& value, std::string_view help, OnResume r) override { add(name, help, &value, r); }
  void field(std::string_view name, std::int64_t& value, std::string_view help, Range range, OnResume r) override {
    add(name, help, &value, r, range);
  }
  void field(std::string_view name, double& value, std::string_view help, Range range, OnResume r) override {
    add(name, help, &value, r, range);
  }
  void field(std::string_view name, std::string& value, std::string_view help, OnResume r) override { add(name, help, &value, r); }
  void field(std::string_view name, std::vector<std::string>& value, std::string_view help, OnResume r) override {
    add(name, help, &value, r);
  }
  void choice(std::string_view name, std::string& value, std::string_view help, std::vector<std::string> names, OnResume r) override {
    check(!names.empty(), "config key `{}`: a choice needs a name to choose", name);
    add(name, help, &value, r, {}, std::move(names));
  }
  void choices(std::string_view name, std::vector<std::string>& value, std::string_view help, std::vector<std::string> names,
               OnResume r) override {
    check(!names.empty(), "config key `{}`: a choice needs a name to choose", name);
    add(name, help, &value, r, {}, std::move(names));
  }
  void idle(std::string_view name, bool has_no_effect, std::string why) override {
    check(!why.empty(), "config key `{}`: idle() needs a reason", key_of(name));
    idle_.push_back({key_of(name), has_no_effect ? std::move(why) : ""});
  }

  void replaced(std::string_view name, std::vector<std::string> by) override {
    ReplacedKey old{key_of(name), {}};
    for (const auto& now : by) old.by.push_back(key_of(now));
    root.replaced.push_back(std::move(old));
  }

  /// The list, when all has been shown. Only now: idle() may come before the field that it names.
  Section finish() {
    for (auto& [key, why] : idle_) {
      Field* field = const_cast<Field*>(find_field(root, key));
      check(field != nullptr, "config key `{}` has a reason to be idle but is no field", key);
      if (field->idle.empty()) field->idle = std::move(why);
    }
    for (const ReplacedKey& old : root.replaced) {
      check(!old.by.empty() && find_field(root, old.key) == nullptr, "config key `{}` is replaced by none, or still a field", old.key);
      for (const auto& now : old.by) check(find_field(root, now) != nullptr, "config key `{}` replaces another but is no field", now);
    }
    return std::move(root);
  }

 protected:
  void enumeration(std::string_view name, EnumSlot value, std::string_view help, std::vector<std::string> names,
                   std::vector<std::int64_t> values, OnResume r) override {
    check(!names.empty(), "config key `{}`: a choice needs a name to choose", name);
    add(name, help, value, r, {}, std::move(names), std::move(values));
  }
  void configurations(std::string_view name, ListSlot value, std::string_view help, OnResume r) override { add(name, help, value, r); }
  void enter(std::string_view name, std::string_view help, OnResume r) override {
    Section section{.key = new_key(name), .help = std::string(help), .may_change = here().may_change || r == OnResume::may_change};
    open_.push_back(here().sections.size());
    // The place is kept as indices: pointers would not survive the next push_back.
    Section* parent = &root;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) parent = &parent->sections[open_[i]];
    parent->sections.push_back(std::move(section));
  }
  void leave() override { open_.pop_back(); }

 private:
  std::vector<std::size_t> open_;
  std::vector<std::pair<std::string, std::string>> idle_;  // key and reason

  Section& here() {
    Section* section = &root;
    for (const auto i : open_) section = &section->sections[i];
    return *section;
  }

  std::string key_of(std::string_view name) { return (here().key.empty() ? "" : here().key + ".") + std::string(name); }

  std::string new_key(std::string_view name) {
    const Section& section = here();
    const std::string key = key_of(name);
    check(well_formed(name), "config key `{}`: a name must be of a-z, 0-9 and _", key);
    check(!find_field(section, key) && !find_section(section, key), "config key `{}` is in the list twice", key);
    return key;
  }

  void add(std::string_view name, std::string_view help, Slot slot, OnResume resume, Range range = {}, std::vector<std::string> names = {},
           std::vector<std::int64_t> enumerators = {}) {
    Field field{std::string(name), new_key(name), std::string(help), slot, range, std::move(names), std::move(enumerators)};
    field.may_change = here().may_change || resume == OnResume::may_change;
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

void add_prefix(Section& section, const std::string& prefix) {
  section.key = section.key.empty() ? prefix : prefix + "." + section.key;
  for (Field& field : section.fields) field.key = prefix + "." + field.key;
  for (Section& inner : section.sections) add_prefix(inner, prefix);
}

/// The values of one configuration in a list that are not its defaults.
std::vector<ItemEntry> changed_values(const Section& item, const Section& defaults) {
  std::vector<ItemEntry> out;
  for (const Field* field : all_fields(item)) {
    Value value = value_of(*field);
    if (value_text(value) != value_text(value_of(*find_field(defaults, field->key)))) out.push_back({field->key, std::move(value)});
  }
  return out;
}

template <class T>
bool points_to(const Slot& slot) {
  return std::holds_alternative<T*>(slot);
}

}  // namespace

Section gather(Ref config) {
  Gatherer gatherer;
  config.fields(gatherer);
  return gatherer.finish();
}

Section gather(ConstRef config) {
  Gatherer gatherer;
  config.fields(gatherer);
  return gatherer.finish();
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
  if (const auto* list = std::get_if<ListSlot>(&field.slot)) {
    const auto fresh = list->make(1);
    const Section defaults = gather(list->at(fresh.get(), 0));
    Items out;
    for (std::size_t i = 0; i < list->size(list->object); ++i)
      out.items.push_back(changed_values(gather(list->at(list->object, i)), defaults));
    return out;
  }
  return *std::get<std::vector<std::string>*>(field.slot);
}

Section gather_item(Ref item, const std::string& prefix) {
  Section section = gather(item);
  add_prefix(section, prefix);
  return section;
}

bool accept(const Field& field, Value& value) {
  if (points_to<bool>(field.slot)) return std::holds_alternative<bool>(value);
  const auto clean = [](const std::string& text) { return text.find('\0') == text.npos; };
  if (points_to<std::vector<std::string>>(field.slot)) {
    const auto* list = std::get_if<std::vector<std::string>>(&value);
    const auto known = [&](const std::string& text) {
      return field.names.empty() || std::find(field.names.begin(), field.names.end(), text) != field.names.end();
    };
    return list && std::all_of(list->begin(), list->end(), clean) && std::all_of(list->begin(), list->end(), known);
  }
  if (std::holds_alternative<ListSlot>(field.slot)) {
    const auto* list = std::get_if<std::vector<std::string>>(&value);
    if (list && list->empty()) value = Items{};
    const auto* items = std::get_if<Items>(&value);
    return items && items->items.size() <= max_items;
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
  } else if (const auto* list = std::get_if<ListSlot>(&field.slot)) {
    const auto& items = std::get<Items>(value).items;
    const auto made = list->make(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      const Section item = gather(list->at(made.get(), i));
      for (const ItemEntry& entry : items[i]) assign(*find_field(item, entry.key), entry.value);
    }
    list->take(list->object, made.get());
  } else {
    *std::get<std::vector<std::string>*>(field.slot) = std::get<std::vector<std::string>>(value);
  }
}

std::string type_text(const Field& field) {
  if (points_to<std::vector<std::string>>(field.slot)) return "list of " + (field.names.empty() ? "text" : joined(field.names, " | "));
  if (!field.names.empty()) return joined(field.names, " | ");
  if (std::holds_alternative<ListSlot>(field.slot)) return "list of sections";
  if (points_to<bool>(field.slot)) return "true | false";
  if (points_to<std::int64_t>(field.slot)) return "integer" + range_text(field.range);
  if (points_to<double>(field.slot)) return "number" + range_text(field.range);
  return "text";
}

std::string wanted_text(const Field& field) {
  if (points_to<std::vector<std::string>>(field.slot))
    return field.names.empty() ? "a list of text" : "a list of some of " + joined(field.names);
  if (std::holds_alternative<ListSlot>(field.slot)) return "a list of sections";
  if (!field.names.empty()) return (field.names.size() > 1 ? "one of " : "") + joined(field.names);
  if (points_to<bool>(field.slot)) return "true or false";
  if (points_to<std::int64_t>(field.slot)) return "an integer" + range_text(field.range);
  if (points_to<double>(field.slot)) return "a number" + range_text(field.range);
  return "text";
}

}  // namespace octet::config
