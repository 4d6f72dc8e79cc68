#include "octet/config/write.hpp"

#include <algorithm>
#include <map>

#include "octet/base/text.hpp"
#include "octet/base/wrapped.hpp"
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

void write_help(const Section& section, std::string_view of, std::string& out) {
  constexpr std::size_t columns = 80;
  std::string rows;
  for (const auto& field : section.fields)
    for (const FieldText& row : rows_of(field))
      if (row.key.starts_with(of))
        rows += wrapped(format("{} = {}  ({})", row.key, row.value, row.type), 0, columns) + "    " + wrapped(row.help, 4, columns);
  if (!rows.empty()) {
    if (!out.empty()) out += "\n";
    out += section.key.empty() ? rows : wrapped(format("[{}]  {}", section.key, section.help), 0, columns) + rows;
  }
  for (const auto& inner : section.sections) write_help(inner, of, out);
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

std::string help_text(ConstRef config, std::string_view of) {
  std::string out;
  write_help(gather(config), of, out);
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
