#include "octet/config/write.hpp"

#include <algorithm>
#include <map>

#include "octet/base/text.hpp"
#include "octet/config/value_text.hpp"

namespace octet::config {
namespace {

/// As TOML: a list of configurations has a line for each.
std::string lines_of(const Value& value) {
  const auto* list = std::get_if<Items>(&value);
  if (!list || list->items.empty()) return value_text(value);
  std::string out = "[\n";
  for (const auto& item : list->items) {
    const std::string text = value_text(Items{{item}});
    out += "  " + text.substr(1, text.size() - 2) + ",\n";
  }
  return out += "]";
}

/// TOML wants a section's own keys before those of its sections: the keys after a heading belong to it.
void write_toml(const Section& section, Comments comments, std::string& out) {
  const auto comment = [&](const std::string& help) {
    if (comments == Comments::help && !help.empty()) out += "# " + printable(help) + "\n";
  };
  if (!section.key.empty() && !section.fields.empty()) {
    if (!out.empty()) out += "\n";
    comment(section.help);
    out += "[" + section.key + "]\n";
  }
  for (const auto& field : section.fields) {
    comment(field.help.empty() ? "" : field.help + " (" + type_text(field) + ")");
    out += field.name + " = " + lines_of(value_of(field)) + "\n";
  }
  for (const auto& inner : section.sections) write_toml(inner, comments, out);
}

std::string_view last_name(std::string_view key) { return key.substr(key.rfind('.') + 1); }

void write_json(const Section& section, const std::string& indent, std::string& out) {
  if (section.fields.empty() && section.sections.empty()) {
    out += "{}";
    return;
  }
  const std::string inner = indent + "  ";
  bool first = true;
  const auto key = [&](std::string_view name) {
    out += (first ? "\n" : ",\n") + inner + quoted(name) + ": ";
    first = false;
  };
  out += "{";
  for (const auto& field : section.fields) key(field.name), out += json_text(value_of(field));
  for (const auto& part : section.sections) key(last_name(part.key)), write_json(part, inner, out);
  out += "\n" + indent + "}";
}

FieldText text_of(const Field& field) { return {field.key, type_text(field), value_text(value_of(field)), field.help}; }

/// A field, and below a list of configurations the fields that each has, with their defaults: "recipe.rules[].path".
std::vector<FieldText> rows_of(const Field& field) {
  std::vector<FieldText> out = {text_of(field)};
  if (const auto* list = std::get_if<ListSlot>(&field.slot)) {
    const auto fresh = list->make(1);
    const Section item = gather_item(list->at(fresh.get(), 0), field.key + "[]");
    for (const Field* inner : all_fields(item)) out.push_back(text_of(*inner));
  }
  return out;
}

void write_help(const Section& section, std::size_t key_width, std::size_t type_width, std::size_t value_width, std::string& out) {
  const auto column = [&](const std::string& cell, std::size_t width) {
    out += cell;
    out.append(2 + width - std::min(width, cell.size()), ' ');
  };
  if (!section.key.empty() && !section.fields.empty()) out += "\n[" + section.key + "]  " + section.help + "\n";
  for (const auto& field : section.fields)
    for (const FieldText& row : rows_of(field)) {
      out += "  ";
      column(row.key, key_width);
      column(row.type, type_width);
      column(row.value, value_width);
      out += row.help + "\n";
    }
  for (const auto& inner : section.sections) write_help(inner, key_width, type_width, value_width, out);
}

}  // namespace

std::string to_toml(ConstRef config, Comments comments) {
  std::string out;
  write_toml(gather(config), comments, out);
  return out;
}

std::string to_json_text(ConstRef config) {
  std::string out;
  write_json(gather(config), "", out);
  return out;
}

std::vector<FieldText> describe(ConstRef config) {
  const Section root = gather(config);
  std::vector<FieldText> out;
  for (const Field* field : all_fields(root))
    for (FieldText& row : rows_of(*field)) out.push_back(std::move(row));
  return out;
}

std::string help_text(ConstRef config) {
  // A long list of choices or a long text widens its own line only.
  constexpr std::size_t widest = 32;
  std::size_t key = 3, type = 4, value = 7;
  for (const auto& row : describe(config)) {
    key = std::max(key, row.key.size());
    if (row.type.size() <= widest) type = std::max(type, row.type.size());
    if (row.value.size() <= widest) value = std::max(value, row.value.size());
  }
  std::string out = "  ";
  for (const auto& [heading, width] : {std::pair("key", key), std::pair("type", type), std::pair("default", value)}) {
    out += heading;
    out.append(2 + width - std::string_view(heading).size(), ' ');
  }
  out += "help\n";
  write_help(gather(config), key, type, value, out);
  return out;
}

std::vector<Difference> differences(ConstRef a, ConstRef b) {
  std::map<std::string, std::string> others;
  for (auto& row : describe(b)) others[row.key] = row.value;
  std::vector<Difference> out;
  for (const auto& row : describe(a)) {
    const auto at = others.find(row.key);
    const std::string other = at == others.end() ? "" : at->second;
    if (other != row.value) out.push_back({row.key, row.value, other});
    if (at != others.end()) others.erase(at);
  }
  for (const auto& row : describe(b)) {
    if (others.contains(row.key)) out.push_back({row.key, "", row.value});
  }
  return out;
}

}  // namespace octet::config
