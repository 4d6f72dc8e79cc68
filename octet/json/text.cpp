#include "octet/json/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "octet/base/check.hpp"

namespace octet::io {
namespace {
using nlohmann::json;

enum class Kind : std::uint8_t { other, blank, structural, quote };

constexpr auto kinds = [] {
  std::array<Kind, 256> all{};
  for (const char c : {' ', '\t', '\n', '\r'}) all[std::size_t(c)] = Kind::blank;
  for (const char c : {'{', '}', '[', ']', ',', ':'}) all[std::size_t(c)] = Kind::structural;
  all[std::size_t('"')] = Kind::quote;
  return all;
}();
Kind kind_of(char c) { return kinds[static_cast<unsigned char>(c)]; }
bool is_blank(char c) { return kind_of(c) == Kind::blank; }
bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20; }

std::string place(const JsonText& json, std::size_t at) {
  if (json.first_byte != 0) return format("byte {}", json.first_byte + at);
  const std::string_view before = json.text.substr(0, at);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto start = before.rfind('\n');
  return format("line {}, column {}", line, at - (start == std::string_view::npos ? 0 : start + 1) + 1);
}

[[noreturn]] void refuse(const JsonText& json, std::size_t at, std::string_view wanted) {
  throw DataError(format("{}: {}: {}", json.file, place(json, at), wanted));
}

/// One past the piece of `text` that begins at `i`: a string, a run of blanks, one bracket, comma or colon, or a run of anything else.
std::size_t piece_end(std::string_view text, std::size_t i, std::size_t end) {
  const Kind kind = kind_of(text[i++]);
  if (kind == Kind::quote) {
    for (; i < end && text[i] != '"'; ++i) i += text[i] == '\\';
    return std::min(i + 1, end);
  }
  if (kind != Kind::structural)
    while (i < end && kind_of(text[i]) == kind) ++i;
  return i;
}

/// The limits, checked before the parser may spend memory on a piece: its lexer keeps a whole piece, blanks too, and takes a NUL for
/// the end of the text.
void check_limits(const JsonText& json, std::size_t begin, std::size_t end) {
  const bool controls = std::any_of(json.text.begin() + std::ptrdiff_t(begin), json.text.begin() + std::ptrdiff_t(end), is_control);
  std::size_t depth = 0;
  for (std::size_t i = begin; i < end;) {
    const std::size_t next = piece_end(json.text, i, end);
    const std::string_view piece = json.text.substr(i, next - i);
    if (controls && !is_blank(piece[0])) {
      const auto bad = std::find_if(piece.begin(), piece.end(), is_control);
      if (bad != piece.end()) {
        const std::string shown = printable(std::string_view(&*bad, 1));
        refuse(json, i + std::size_t(bad - piece.begin()), format("a control character ({}) does not belong here", shown));
      }
    }
    if (piece.size() > json.max_piece) {
      refuse(json, i,
             format("one string, number or run of blanks may have {} bytes, this one has more", grouped((long long)json.max_piece)));
    }
    if (piece[0] == '{' || piece[0] == '[') ++depth;
    if ((piece[0] == '}' || piece[0] == ']') && depth > 0) --depth;
    if (depth > json.max_depth) refuse(json, i, format("objects and arrays may stand {} deep in one another, not deeper", json.max_depth));
    i = next;
  }
}

/// Hands nlohmann's events on, and keeps its verdict on a broken text.
struct Relay {
  JsonEvents& to;
  std::size_t at = 0;
  std::string reason;

  bool null() { return to.on_null(), true; }
  bool boolean(bool x) { return to.on_bool(x), true; }
  bool number_integer(json::number_integer_t x) { return to.on_negative(x), true; }
  bool number_unsigned(json::number_unsigned_t x) { return to.on_integer(x), true; }
  bool number_float(json::number_float_t x, const std::string&) { return to.on_real(x), true; }
  bool string(std::string& x) { return to.on_string(x), true; }
  bool binary(json::binary_t&) { return false; }
  bool start_object(std::size_t) { return to.on_begin('{'), true; }
  bool key(std::string& x) { return to.on_key(x), true; }
  bool end_object() { return to.on_end('}'), true; }
  bool start_array(std::size_t) { return to.on_begin('['), true; }
  bool end_array() { return to.on_end(']'), true; }
  bool parse_error(std::size_t position, const std::string&, const json::exception& e) {
    at = position == 0 ? 0 : position - 1;
    reason = e.what();
    return false;
  }
};

/// Of "[json.exception.parse_error.101] parse error at line 1, column 3: syntax error while ..." the last part, shortened.
std::string short_reason(std::string reason) {
  const auto tag = reason.find("] ");
  if (tag != std::string::npos) reason.erase(0, tag + 2);
  const auto column = reason.find(": ");
  if (reason.starts_with("parse error") && column != std::string::npos) reason.erase(0, column + 2);
  if (reason.size() > 200) reason = reason.substr(0, 200) + "...";
  for (char& c : reason) c = static_cast<unsigned char>(c) < 0x80 ? c : '?';  // it may quote bytes that are no UTF-8
  return printable(reason);
}

}  // namespace

void read_json(const JsonText& source, JsonEvents& events) {
  const std::string_view text = source.text;
  std::size_t begin = 0, end = text.size();
  while (begin < end && is_blank(text[begin])) ++begin;
  while (end > begin && is_blank(text[end - 1])) --end;
  if (begin == end || text[begin] != '{') refuse(source, begin, "a JSON object must begin here, in UTF-8 without byte order mark");

  check_limits(source, begin, end);
  Relay relay{events, 0, {}};
  if (!json::sax_parse(text.data() + begin, text.data() + end, &relay)) {
    refuse(source, begin + relay.at, "not valid JSON: " + short_reason(relay.reason));
  }
}

std::string quote_json(std::string_view s) {
  try {
    return json(s).dump();
  } catch (const json::exception&) {
    throw ContractError(format("JSON text must be UTF-8, got '{}'", printable(s)));
  }
}

std::string number_json(double x) {
  check(std::isfinite(x), "a JSON number must be finite, got {}", x);
  return json(x).dump();
}

}  // namespace octet::io
