#include "octet/telemetry/report/markup.hpp"

#include <cmath>
#include <cstdint>

#include "octet/base/text.hpp"

namespace octet::telemetry::report {
namespace {

/// The character that begins at s[0] and its length in bytes; length 0 where the bytes are not UTF-8 (RFC 3629: shortest form, no
/// surrogates, at most U+10FFFF).
struct Character {
  std::uint32_t code = 0;
  std::size_t length = 0;
};

Character first_character(std::string_view s) {
  const auto byte = [&](std::size_t i) { return std::uint32_t(static_cast<unsigned char>(s[i])); };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || s.size() < length) return {};
  std::uint32_t code = lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3F);
  }
  const std::uint32_t least = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0x80;
  if (code < least || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
  return {code, length};
}

bool shown(std::uint32_t c) {
  const bool control = (c < 0x20 && c != '\t' && c != '\n') || (c >= 0x7F && c < 0xA0);
  const bool reorders = (c >= 0x200E && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0x61C;
  return !control && !reorders && c != 0xFFFE && c != 0xFFFF;
}

}  // namespace

std::string escaped(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  while (!s.empty()) {
    const Character c = first_character(s);
    const std::size_t length = c.length ? c.length : 1;
    if (!c.length || !shown(c.code)) out += "\xEF\xBF\xBD";
    else if (c.code == '&') out += "&amp;";
    else if (c.code == '<') out += "&lt;";
    else if (c.code == '>') out += "&gt;";
    else if (c.code == '"') out += "&quot;";
    else if (c.code == '\'') out += "&#39;";
    else out += s.substr(0, length);
    s.remove_prefix(length);
  }
  return out;
}

std::string coordinate(double x, int digits) {
  if (!std::isfinite(x)) return "0";
  std::string out = fixed(x, digits);
  if (out.find('.') != out.npos) out.erase(out.find_last_not_of('0') + 1);
  if (out.back() == '.') out.pop_back();
  return out == "-0" ? "0" : out;
}

std::string percent(double fraction) { return coordinate(100 * fraction) + "%"; }

std::string Markup::new_id() { return format("c{}", ++ids_); }

void Markup::open(std::string_view tag, Attributes attributes) {
  out_ += '<';
  out_ += tag;
  for (const auto& [name, value] : attributes) {
    out_ += ' ';
    out_ += name;
    out_ += "=\"";
    out_ += escaped(value);
    out_ += '"';
  }
}

void Markup::close() {
  out_ += "</" + open_.back() + ">";
  open_.pop_back();
}

Markup::Element Markup::in(std::string_view tag, Attributes attributes) {
  open(tag, attributes);
  out_ += '>';
  open_.emplace_back(tag);
  return Element(*this);
}

void Markup::element(std::string_view tag, std::string_view text, Attributes attributes) {
  const auto scope = in(tag, attributes);
  this->text(text);
}

void Markup::leaf(std::string_view tag, Attributes attributes) {
  open(tag, attributes);
  out_ += "/>";
}

}  // namespace octet::telemetry::report
