#pragma once

#include "octet/config/fields.hpp"

// The external forms of a configuration: resolved TOML, JSON, help, and the differences between two.
// Texts are taken to be UTF-8, as everything read is. All of them throw ContractError for a field list that breaks its own rules (see
// FieldVisitor) or a value outside its range.

namespace octet::config {

enum class Comments { none, help };

/// The whole configuration as TOML that read_toml turns back into exactly this one: doubles in the fewest digits that give the same
/// bits. With Comments::help every key has its help above it.
std::string to_toml(ConstRef config, Comments comments = Comments::none);

/// The same as one JSON object, sections nested, indented by two spaces, without a final newline. Texts that are not UTF-8 pass as they
/// are.
std::string to_json_text(ConstRef config);

/// One field as text. `value` is as in TOML; `type` is "true | false", "integer >= 1", "number in (0, 1]", "text", "list of text" or
/// "cosine | linear".
struct FieldText {
  std::string key, type, value, help;
};
/// Every field, a section's own before those of its sections; below a list of configurations the fields of one, as "recipe.rules[].path".
std::vector<FieldText> describe(ConstRef config);

/// For a screen of 80 columns: a heading per section, per key its value, type and help. `of`: only keys that begin with it; "" where none
/// does.
std::string help_text(ConstRef config, std::string_view of = "");

/// A key whose values differ, as TOML; "" where only the other configuration has the key.
struct Difference {
  std::string key, a, b;
};
std::vector<Difference> differences(ConstRef a, ConstRef b);

}  // namespace octet::config
