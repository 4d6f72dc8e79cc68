#pragma once

#include "octet/config/field_list.hpp"

namespace octet::config {

/// The fewest digits that read back as the same double, with a point or an exponent: 0.0003, 1.0, 1e-8. "nan", "inf", "-inf".
std::string number_text(double x);

/// A double-quoted string with escapes that TOML and JSON share.
std::string quoted(std::string_view text);

/// A name as a TOML key: in quotes where it needs them.
std::string key_text(const std::string& name);

/// `value` as TOML.
std::string value_text(const Value& value);
/// `value` as JSON; a NaN or an infinity is not.
std::string json_text(const Value& value);

/// `text` as messages show it: control bytes visible, at most `most` bytes of it.
std::string shown(std::string_view text, std::size_t most = 60);

}  // namespace octet::config
