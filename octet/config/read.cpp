#include "octet/config/read.hpp"

#include <algorithm>

#include "octet/base/check.hpp"
#include "octet/base/error.hpp"
#include "octet/base/file.hpp"
#include "octet/base/text.hpp"
#include "octet/base/utf8.hpp"
#include "octet/config/nearest_key.hpp"
#include "octet/config/toml_text.hpp"
#include "octet/config/value_text.hpp"

namespace octet::config {
namespace {

/// The key as one would write it in TOML: names that need quotes have them.
std::string joined(const std::vector<std::string>& path) {
  std::string out;
  for (const auto& name : path) out += (out.empty() ? "" : ".") + key_text(name);
  return out;
}

std::string got_text(const Value& value) {
  const auto* number = std::get_if<double>(&value);
  if (number && !(*number - *number == 0)) return number_text(*number) + ", which is not finite";
  if (const auto* list = std::get_if<Items>(&value))
    return list->items.size() > max_items ? format("{}, more than {}", list->items.size(), max_items) : "a list of sections";
  return shown(value_text(value), 80);
}

/// The sentence for a value that its field does not take, without the place.
std::string refusal(const Field& field, const Value& value) {
  std::string out = format("`{}` must be {}, got {}", field.key, wanted_text(field), got_text(value));
  const auto* text = std::get_if<std::string>(&value);
  if (text && !field.names.empty() && text->size() <= 128) {
    const auto near = nearest_of(*text, field.names);
    if (!near.empty()) out += format("; did you mean {}?", near);
  }
  if (text && text->find('\0') != text->npos) out += "; a text cannot have a NUL in it";
  if (text && std::holds_alternative<std::vector<std::string>*>(field.slot)) out += format("; write [{}]", shown(quoted(*text)));
  if (const auto* list = std::get_if<std::vector<std::string>>(&value); list && !field.names.empty())
    for (const std::string& element : *list)
      if (const auto near = element.size() <= 128 ? nearest_of(element, field.names) : ""; !near.empty() && near != element)
        return out + format("; did you mean {}?", near);
  if (std::holds_alternative<ListSlot>(field.slot)) out += format("; write [[{}]] before the keys of each", field.key);
  return out;
}

const ReplacedKey* find_replaced(const Section& root, const std::string& key) {
  const auto at = std::find_if(root.replaced.begin(), root.replaced.end(), [&](const ReplacedKey& old) { return old.key == key; });
  return at == root.replaced.end() ? nullptr : &*at;
}

std::string unknown(const Section& root, const std::string& key) {
  if (const ReplacedKey* old = find_replaced(root, key)) {
    std::string now;
    for (const auto& by : old->by) now += (now.empty() ? "`" : " and `") + by + "`";
    return format("`{}` was replaced; set {}", key, now);
  }
  return format("unknown key `{}`{}", shown(key, 80), suggestion(root, key));
}

std::string not_a_section(const Section& section, const Value& value) {
  if (std::holds_alternative<Items>(value))
    return format("`{}` is one section, got a list of sections; write [{}] once, not [[{}]]", section.key, section.key, section.key);
  const auto& inside = section.fields.empty() ? section.sections.front().key : section.fields.front().key;
  return format("`{}` is a section, got {}; set the keys in it, such as `{}`", section.key, got_text(value), inside);
}

/// Has `refuse(position, sentence)` called for the first fault inside `value`, which accept() passed for `field`; brings the values inside
/// to what their fields hold.
template <class Refuse>
void check_items(const Field& field, Value& value, const Refuse& refuse) {
  const auto* list = std::get_if<ListSlot>(&field.slot);
  if (!list) return;
  const auto fresh = list->make(1);
  int number = 0;
  for (auto& entries : std::get<Items>(value).items) {
    const std::string prefix = format("{}[{}]", field.key, ++number);
    const Section item = gather_item(list->at(fresh.get(), 0), prefix);
    for (ItemEntry& entry : entries) {
      const std::string key = prefix + "." + entry.key;
      const Field* inner = find_field(item, key);
      if (!inner) return refuse(entry.key_at, unknown(item, key));
      if (!accept(*inner, entry.value)) return refuse(entry.value_at, refusal(*inner, entry.value));
      check_items(*inner, entry.value, refuse);
    }
  }
}

struct Assignment {
  const Field* field;
  Value value;
  std::string place;
};

/// The assignment that `entry` asks for, or none where it only opens a section.
void plan(const Section& root, Entry& entry, const std::string& name, Written written, std::vector<Assignment>& out) {
  const std::string key = joined(entry.path);
  if (const ReplacedKey* old = find_replaced(root, key); old != nullptr && written == Written::by_program) {
    for (const auto& now : old->by) {
      Entry each = entry;
      each.path.clear();
      for (std::size_t from = 0, to = 0; to != now.npos; from = to + 1)
        to = now.find('.', from), each.path.push_back(now.substr(from, to == now.npos ? to : to - from));
      plan(root, each, name, written, out);
    }
    return;
  }
  const auto refuse = [&](Position at, const std::string& what) { throw ConfigError(place_text(name, at) + what); };
  if (const Section* section = find_section(root, key)) {
    const auto* foreign = std::get_if<Foreign>(&entry.value);
    if (!foreign || foreign->what != "a section") refuse(entry.key_at, not_a_section(*section, entry.value));
    return;
  }
  const Field* field = find_field(root, key);
  if (!field) refuse(entry.key_at, unknown(root, key));
  if (!accept(*field, entry.value)) refuse(entry.value_at, refusal(*field, entry.value));
  check_items(*field, entry.value, refuse);
  out.push_back({field, std::move(entry.value), format("{}:{}:{}", name, entry.key_at.line, entry.key_at.column)});
}

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

/// "a,b,c".
Value split(std::string_view text) {
  std::vector<std::string> out;
  for (bool more = !text.empty(); more;) {
    const auto comma = text.find(',');
    more = comma != std::string_view::npos;
    out.emplace_back(trimmed(text.substr(0, comma)));
    if (out.back().empty()) return Foreign{"a list with an empty element"};
    if (more) text.remove_prefix(comma + 1);
  }
  return out;
}

/// The text of an override as a value that `field` may take; what cannot be read comes back as text, or in words, to be refused.
Value override_value(const Field& field, std::string_view text) {
  const bool list = std::holds_alternative<std::vector<std::string>*>(field.slot);
  const bool word = std::holds_alternative<std::string*>(field.slot) || std::holds_alternative<EnumSlot>(field.slot);
  if (list && !text.starts_with('[')) return split(text);
  if (word && !text.starts_with('"') && !text.starts_with('\'')) return std::string(text);
  try {
    auto entries = parse_toml("value = " + std::string(text), "");
    // A line break or a brace could have brought a second key.
    if (entries.size() == 1) return std::move(entries.front().value);
  } catch (const ConfigError&) {
  }
  if (list) return Foreign{"a list that is not TOML (write a,b or [\"a\", \"b\"])"};
  if (std::holds_alternative<ListSlot>(field.slot)) return Foreign{"text that is not TOML (write [{key = value, key = value}, {...}])"};
  if (word) return Foreign{"a quoted text that is not TOML"};
  return std::string(text);
}

}  // namespace

Origins read_toml(std::string_view text, const std::string& name, Ref config, Written written) {
  const Section root = gather(config);
  std::vector<Assignment> plans;
  for (auto& entry : parse_toml(text, name)) plan(root, entry, name, written, plans);
  Origins origins;
  for (const auto& [field, value, place] : plans) {
    assign(*field, value);
    origins[field->key] = place;
  }
  return origins;
}

Origins read_toml_file(const std::string& path, Ref config, Written written) {
  std::string text;
  try {
    text = read_file(path, max_toml_bytes);
  } catch (const DataError& e) {
    throw ConfigError(std::string(e.what()) + "; name a TOML file");
  }
  return read_toml(text, path, config, written);
}

void apply_override(Ref config, std::string_view assignment, Origins& origins) {
  const std::string place = format("--set {}", shown(assignment));
  const auto refuse = [&](const std::string& what) { throw ConfigError(format("{}: {}", place, what)); };
  if (assignment.size() > max_toml_bytes) refuse("longer than a whole configuration may be");
  if (valid_utf8_bytes(assignment) < assignment.size()) refuse("not UTF-8");
  const auto equals = assignment.find('=');
  if (equals == std::string_view::npos) refuse("there is no '='; write section.key=value");
  const std::string key(trimmed(assignment.substr(0, equals)));
  if (key.empty()) refuse("there is no key before '='; write section.key=value");
  set_key_text(config, key, assignment.substr(equals + 1), place, origins);
  origins[key] = "--set";
}

void set_key_text(Ref config, std::string_view key_text, std::string_view value_text, const std::string& place, Origins& origins) {
  const auto refuse = [&](const std::string& what) { throw ConfigError(format("{}: {}", place, what)); };
  const std::string key(key_text);
  if (valid_utf8_bytes(key) < key.size() || valid_utf8_bytes(value_text) < value_text.size()) refuse("not UTF-8");
  if (key.empty() || key.front() == '.' || key.back() == '.' || key.find("..") != std::string::npos)
    refuse("the key has an empty part between its dots; write section.key=value");

  const Section root = gather(config);
  const Field* field = find_field(root, key);
  const std::string_view text = trimmed(value_text);
  if (!field) {
    if (const Section* section = find_section(root, key)) refuse(not_a_section(*section, std::string(text)));
    refuse(unknown(root, key));
  }
  Value value = override_value(*field, text);
  if (!accept(*field, value)) refuse(refusal(*field, value));
  check_items(*field, value, [&](Position, const std::string& what) { refuse(what); });
  assign(*field, value);
  origins[key] = place;
}

void set_key(Ref config, std::string_view key, std::variant<std::int64_t, double, std::string> given, const std::string& option,
             Origins& origins) {
  const Section root = gather(config);
  const Field* field = find_field(root, key);
  check(field != nullptr, "config: {} sets {}, which is not a key", option, key);
  Value value = std::visit([](auto&& x) { return Value(std::forward<decltype(x)>(x)); }, std::move(given));
  if (const auto* text = std::get_if<std::string>(&value); text && valid_utf8_bytes(*text) < text->size())
    throw ConfigError(format("{} {}: not UTF-8; choose a name that is", option, shown(*text)));
  if (!accept(*field, value)) throw ConfigError(format("{}: {}", option, refusal(*field, value)));
  assign(*field, value);
  origins[std::string(key)] = option;
}

std::string cite(const Origins& origins, const std::string& key) {
  const auto at = origins.find(key);
  return at == origins.end() ? format("`{}`", key) : format("{}: `{}`", printable(at->second), key);
}

}  // namespace octet::config
