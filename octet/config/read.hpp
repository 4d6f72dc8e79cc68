#pragma once

#include <map>
#include <string>
#include <variant>

#include "octet/config/fields.hpp"

// Configuration from TOML 1.0 text and from `--set key=value`, strictly. Every refusal is a ConfigError of one sentence that begins
// with the place ("run.toml:4:17: ", line and column from 1, or "--set optim.lr=x: ") and names the wanted value, the given one, and the
// nearest key where there is one; the configuration is then unchanged.
// Refused: unknown keys, sections where values are wanted and the reverse, wrong types (an integer serves as a number, never a
// number for an integer), values out of range, NaN and infinity, a key set twice, text that is not UTF-8 without byte-order mark,
// more than 1 MiB, more than 16 levels.

namespace octet::config {

inline constexpr std::size_t max_toml_bytes = 1 << 20;

/// Where each key that somebody set was set: "optim.learning_rate" -> "run.toml:4:1" or "--set". Keys left at their default are absent.
using Origins = std::map<std::string, std::string>;

/// Who wrote a text: a user of this version, or a version of the program, maybe an earlier one, whose keys may have been replaced since
/// (FieldVisitor::replaced).
enum class Written : std::uint8_t { by_user, by_program };

/// Also throws IoError when the file cannot be read.
Origins read_toml_file(const std::string& path, Ref config, Written = Written::by_user);

/// `name` names the text in messages, like a file's path.
Origins read_toml(std::string_view text, const std::string& name, Ref config, Written = Written::by_user);

/// Sets one key from "section.key=value". The value is TOML; text may go without quotes, and a list may be written a,b,c.
/// Adds the key to `origins`.
void apply_override(Ref config, std::string_view assignment, Origins& origins);

/// The same of a key and the text of its value. `place` begins messages, and becomes the key's origin.
void set_key_text(Ref config, std::string_view key, std::string_view text, const std::string& place, Origins& origins);

/// Sets one key to the value of a command-line option, as strictly as apply_override(): `option` ("--output") is named in the refusal,
/// and becomes the key's origin. Throws ContractError where there is no such key.
void set_key(Ref config, std::string_view key, std::variant<std::int64_t, double, std::string> value, const std::string& option,
             Origins& origins);

/// "run.toml:4:1: `optim.warmup`" when `key` was set, else "`optim.warmup`": how a component that finds fault with a value, or has
/// no use for it, begins its sentence.
std::string cite(const Origins& origins, const std::string& key);

}  // namespace octet::config
