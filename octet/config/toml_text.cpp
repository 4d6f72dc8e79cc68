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

constexpr const char* how_toml_is_written = "a section is headed [name], a key is name = value, a text stands in quotes";

Position position_of(const toml::source_region& source) { return {source.begin.line, source.begin.column}; }

/// What a node that no field takes is, in words.
std::string kind_text(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a section";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::date:
      return "a date";
    case toml::node_type::time:
      return "a time";
    case toml::node_type::date_time:
      return "a date and time";
    case toml::node_type::boolean:
      return node.ref<bool>() ? "true" : "false";
    case toml::node_type::integer:
      return std::to_string(node.ref<std::int64_t>());
    case toml::node_type::floating_point:
      return number_text(node.ref<double>());
    default:
      return "something else";
  }
}

Value list_of(const toml::array& array) {
  if (!array.empty() && array.is_array_of_tables()) return Foreign{"a list of sections"};
  std::vector<std::string> texts;
  for (const toml::node& item : array) {
    if (!item.is_string()) return Foreign{"a list with " + kind_text(item) + " in it"};
    texts.push_back(item.ref<std::string>());
  }
  return texts;
}

Value value_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::boolean:
      return node.ref<bool>();
    case toml::node_type::integer:
      return node.ref<std::int64_t>();
    case toml::node_type::floating_point:
      return node.ref<double>();
    case toml::node_type::string:
      return node.ref<std::string>();
    case toml::node_type::array:
      return list_of(*node.as_array());
    default:
      return Foreign{kind_text(node)};
  }
}

void flatten(const toml::table& table, const std::vector<std::string>& path, std::vector<Entry>& out) {
  for (const auto& [key, node] : table) {
    auto inner = path;
    inner.emplace_back(key.str());
    out.push_back({inner, position_of(key.source()), position_of(node.source()), value_of(node)});
    if (node.is_table()) flatten(*node.as_table(), inner, out);
  }
}

/// toml++ says "Error while parsing <what>: <mistake>".
std::string mistake_text(std::string_view description) {
  constexpr std::string_view prefix = "Error while parsing ";
  if (description.starts_with(prefix)) description.remove_prefix(prefix.size());
  const bool twice = description.find("redefine") != std::string_view::npos;
  return "not TOML: " + shown(description, 200) + (twice ? "; a key or a section may stand once only" : std::string("; ") + how_toml_is_written);
}

}  // namespace

std::vector<Entry> parse_toml(std::string_view text, const std::string& name) {
  guard_toml(text, name);
  std::vector<Entry> entries;
  try {
    flatten(toml::parse(text), {}, entries);
  } catch (const toml::parse_error& e) {
    throw ConfigError(place_text(name, position_of(e.source())) + mistake_text(e.description()));
  } catch (const BrokenAssumption&) {
    throw ConfigError(printable(name) + ": not TOML; " + how_toml_is_written);
  }
  // toml++ keeps tables sorted by key; the first mistake of a text is the first one in it. Stable: a table before what is inside it.
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.key_at < b.key_at; });
  return entries;
}

}  // namespace octet::config
