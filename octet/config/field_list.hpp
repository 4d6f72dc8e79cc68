#pragma once

#include <variant>

#include "octet/config/fields.hpp"
#include "octet/config/toml_guard.hpp"

// A configuration's list, gathered: the one visitor behind reading and writing. For this level only.

namespace octet::config {

/// A TOML value that no field accepts: "a date", "a section".
struct Foreign {
  std::string what;
};

/// The values of a list of configurations: for each, the keys that it sets.
struct ItemEntry;
inline constexpr std::size_t max_items = 1000;
struct Items {
  std::vector<std::vector<ItemEntry>> items;
};

using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>, Items, Foreign>;
using Slot = std::variant<bool*, std::int64_t*, double*, std::string*, std::vector<std::string>*, EnumSlot, ListSlot>;

struct ItemEntry {
  std::string key;  // within its configuration
  Value value;
  Position key_at = {}, value_at = {};
};

struct Field {
  std::string name, key, help;  // key: the name with its sections before it, "optim.learning_rate"
  Slot slot;
  Range range = {};
  std::vector<std::string> names = {};         // a choice's, or those of the elements
  std::vector<std::int64_t> enumerators = {};  // an enum's, one per name
  bool may_change = false;                     // by a resumed run
  std::string idle = {};                       // why it has no effect; "" where it has one
};

/// A key of earlier versions and the keys that replaced it.
struct ReplacedKey {
  std::string key;
  std::vector<std::string> by;
};

struct Section {
  std::string key, help;  // key "" is the whole configuration
  std::vector<Field> fields = {};
  std::vector<Section> sections = {};
  bool may_change = false;                 // so all that is in it
  std::vector<ReplacedKey> replaced = {};  // only in the whole configuration: of all sections
};

/// The fields of `config`, pointing into it. Throws ContractError when a name is ill-formed or repeated, a value is not accepted by its
/// own field, or idle() names no field.
Section gather(Ref config);
Section gather(ConstRef config);

const Field* find_field(const Section&, std::string_view key);
const Section* find_section(const Section&, std::string_view key);
/// Every field, a section's own before those of its sections.
std::vector<const Field*> all_fields(const Section&);

Value value_of(const Field&);
/// Whether the field takes `value`, which is converted to the field's type: an integer becomes a number. The entries of a
/// list of configurations are not checked.
bool accept(const Field&, Value& value);
/// `value` must be one that accept() passed, and so must its entries.
void assign(const Field&, const Value& value);

/// The fields of one configuration in a list, with keys that begin with `prefix`, "recipe.rules[1]". Points into `item`.
Section gather_item(Ref item, const std::string& prefix);

/// "integer >= 1", as in help.
std::string type_text(const Field&);
/// "an integer >= 1", as in "must be ...".
std::string wanted_text(const Field&);

}  // namespace octet::config
