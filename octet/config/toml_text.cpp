#include "octet/config/toml_text.hpp"

#include <algorithm>
#include <stdexcept>

namespace {
/// The parser met a text that its author did not expect.
struct BrokenAssumption : std::logic_error {
  using std::logic_error::logic_error;
};
[[noreturn]] void broken_assumption(const char* what) { throw BrokenAssumption(what); }
}  // namespace

// Texts such as "[[=" break assumptions of toml++ 3.3 (its issue 294). With NDEBUG it hands them to the optimizer as facts, so such a
// text is undefined behaviour; here they are errors.
#undef NDEBUG
#define TOML_ASSERT(condition) ((condition) ? static_cast<void>(0) : broken_assumption(#condition))
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/config/value_text.hpp"

namespace octet::config {
namespace {

constexpr const char* how_toml_is_written = "a section is headed [name], a key is name = value, a text is in quotes";

// toml++ 3.3 runs into __builtin_unreachable on some characters below U+10000 outside strings, or that it assumes there
// while it looks ahead. It never sees one: each is moved up to plane 16, where the text has none (guard_toml), and its output is moved
// back. One character stays one character, so its columns hold.
constexpr unsigned plane_16 = 0x100000;

unsigned continuation(char c) { return static_cast<unsigned char>(c) & 0x3Fu; }

/// Each character from U+0080 to U+FFFF moved up by plane_16. `text` is well-formed UTF-8.
std::string moved_up(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0xC0 || lead >= 0xF0) {  // ASCII, or of a sequence of four bytes
      out += text[i];
      continue;
    }
    const bool three = lead >= 0xE0;
    unsigned c = three ? (lead & 0x0Fu) << 12 | continuation(text[i + 1]) << 6 : (lead & 0x1Fu) << 6;
    c = plane_16 + (c | continuation(text[i + (three ? 2 : 1)]));
    i += three ? 2 : 1;
    for (const unsigned byte : {0xF0u | c >> 18, 0x80u | (c >> 12 & 0x3F), 0x80u | (c >> 6 & 0x3F), 0x80u | (c & 0x3F)}) out += char(byte);
  }
  return out;
}

/// The inverse of moved_up.
std::string moved_back(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (static_cast<unsigned char>(text[i]) != 0xF4 || i + 3 >= text.size()) {
      out += text[i];
      continue;
    }
    const unsigned c = continuation(text[i + 1]) << 12 | continuation(text[i + 2]) << 6 | continuation(text[i + 3]);
    i += 3;
    if (c < 0x800) {
      out += char(0xC0 | c >> 6);
    } else {
      out += char(0xE0 | c >> 12);
      out += char(0x80 | (c >> 6 & 0x3F));
    }
    out += char(0x80 | (c & 0x3F));
  }
  return out;
}

Position position_of(const toml::source_region& source) { return {source.begin.line, source.begin.column}; }

/// A node that no field accepts, in words.
std::string kind_text(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table: return "a section";
    case toml::node_type::array: return "a list";
    case toml::node_type::date: return "a date";
    case toml::node_type::time: return "a time";
    case toml::node_type::date_time: return "a date and time";
    case toml::node_type::boolean: return node.ref<bool>() ? "true" : "false";
    case toml::node_type::integer: return std::to_string(node.ref<std::int64_t>());
    case toml::node_type::floating_point: return number_text(node.ref<double>());
    default: return "something else";
  }
}

Value value_of(const toml::node& node);

void add_entries(const toml::table& table, const std::string& prefix, std::vector<ItemEntry>& out) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + key_text(moved_back(key.str()));
    if (node.is_table()) add_entries(*node.as_table(), name + ".", out);
    else out.push_back({name, value_of(node), position_of(key.source()), position_of(node.source())});
  }
}

std::vector<ItemEntry> entries_of(const toml::table& table) {
  std::vector<ItemEntry> out;
  add_entries(table, "", out);
  std::stable_sort(out.begin(), out.end(), [](const ItemEntry& a, const ItemEntry& b) { return a.key_at < b.key_at; });
  return out;
}

Value list_of(const toml::array& array) {
  if (!array.empty() && array.is_array_of_tables()) {
    Items out;
    for (const toml::node& item : array) out.items.push_back(entries_of(*item.as_table()));
    return out;
  }
  std::vector<std::string> texts;
  for (const toml::node& item : array) {
    if (!item.is_string()) return Foreign{"a list with " + kind_text(item) + " in it"};
    texts.push_back(moved_back(item.ref<std::string>()));
  }
  return texts;
}

Value value_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::boolean: return node.ref<bool>();
    case toml::node_type::integer: return node.ref<std::int64_t>();
    case toml::node_type::floating_point: return node.ref<double>();
    case toml::node_type::string: return moved_back(node.ref<std::string>());
    case toml::node_type::array: return list_of(*node.as_array());
    default: return Foreign{kind_text(node)};
  }
}

void flatten(const toml::table& table, const std::vector<std::string>& path, std::vector<Entry>& out) {
  for (const auto& [key, node] : table) {
    auto inner = path;
    inner.push_back(moved_back(key.str()));
    out.push_back({inner, position_of(key.source()), position_of(node.source()), value_of(node)});
    if (node.is_table()) flatten(*node.as_table(), inner, out);
  }
}

/// The key or the section on a line.
std::string name_on_line(std::string_view text, std::size_t line) {
  for (std::size_t i = 1; i < line && !text.empty(); ++i) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  text = text.substr(0, text.find('\n'));
  const auto trim = [&](std::string_view away) {
    const auto first = text.find_first_not_of(away);
    text = first == text.npos ? "" : text.substr(first, text.find_last_not_of(away) - first + 1);
  };
  trim(" \t\r");
  if (text.starts_with('[')) text = text.substr(0, text.find_last_of(']'));
  else text = text.substr(0, text.find('='));
  trim(" \t\r[]\"'");
  return shown(text, 80);
}

/// toml++ says "Error while parsing <what>: <mistake>".
std::string mistake_text(std::string_view description, std::string_view text, std::size_t line) {
  constexpr std::string_view prefix = "Error while parsing ";
  if (description.starts_with(prefix)) description.remove_prefix(prefix.size());
  const auto says = [&](std::string_view part) { return description.find(part) != description.npos; };
  if (says("redefine")) return "not TOML: '" + name_on_line(text, line) + "' is there already; a key or a section may occur only once";
  if (says("string") && (says("unescaped control") || says("end-of-file")))
    return std::string("not TOML: a text in quotes does not end on its line; ") + how_toml_is_written;
  return "not TOML: " + shown(moved_back(description), 200) + "; " + how_toml_is_written;
}

}  // namespace

std::vector<Entry> parse_toml(std::string_view text, const std::string& name) {
  guard_toml(text, name);
  std::vector<Entry> entries;
  try {
    flatten(toml::parse(moved_up(text)), {}, entries);
  } catch (const toml::parse_error& e) {
    throw ConfigError(place_text(name, position_of(e.source())) + mistake_text(e.description(), text, position_of(e.source()).line));
  } catch (const BrokenAssumption&) {
    throw ConfigError(printable(name) + ": not TOML; " + how_toml_is_written);
  }
  // toml++ keeps tables sorted by key; the first mistake of a text is the first one in it. Stable: a table before its entries.
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.key_at < b.key_at; });
  return entries;
}

}  // namespace octet::config
