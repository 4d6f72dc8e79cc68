#include "octet/config/value_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "octet/base/text.hpp"

namespace octet::config {

std::string number_text(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x < 0 ? "-inf" : "inf";
  const double size = std::fabs(x);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, x, plain ? std::chars_format::fixed : std::chars_format::scientific).ptr;
  std::string text(buffer, end);
  if (plain) return text.find('.') == std::string::npos ? text + ".0" : text;
  // to_chars writes two digits at least: 1e-08.
  const auto digits = text.find('e') + 2;
  if (text[digits] == '0') text.erase(digits, 1);
  return text;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\', out += char(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c < 0x20 || c == 0x7F) {
      const char* hex = "0123456789abcdef";
      out += "\\u00", out += hex[c >> 4], out += hex[c & 15];
    } else {
      out += char(c);
    }
  }
  return out += '"';
}

std::string key_text(const std::string& name) {
  const bool bare = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  return bare ? name : quoted(name);
}

namespace {
struct ToText {
  bool json = false;
  std::string operator()(bool x) const { return x ? "true" : "false"; }
  std::string operator()(std::int64_t x) const { return std::to_string(x); }
  std::string operator()(double x) const { return number_text(x); }
  std::string operator()(const std::string& x) const { return quoted(x); }
  std::string operator()(const std::vector<std::string>& list) const {
    std::string out = "[";
    for (const auto& x : list) out += (out.size() > 1 ? ", " : "") + quoted(x);
    return out += "]";
  }
  std::string operator()(const Items& list) const {
    std::string out = "[";
    for (const auto& item : list.items) {
      out += out.size() > 1 ? ", {" : "{";
      for (const ItemEntry& entry : item)
        out += format("{}{}{}", &entry == item.data() ? "" : ", ", json ? quoted(entry.key) + ": " : entry.key + " = ",
                      std::visit(*this, entry.value));
      out += "}";
    }
    return out += "]";
  }
  std::string operator()(const Foreign& x) const { return x.what; }
};
}  // namespace

std::string value_text(const Value& value) { return std::visit(ToText{}, value); }
std::string json_text(const Value& value) { return std::visit(ToText{.json = true}, value); }

std::string shown(std::string_view text, std::size_t most) {
  if (text.size() <= most) return printable(text);
  // Never cut inside a UTF-8 sequence.
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return printable(text.substr(0, most)) + "...";
}

}  // namespace octet::config
