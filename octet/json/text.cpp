#include "octet/json/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "octet/base/check.hpp"

namespace octet::json {
namespace {

enum class Kind : std::uint8_t { other, blank, structural, quote };

constexpr auto kinds = [] {
  std::array<Kind, 256> all{};
  for (const char c : {' ', '\t', '\n', '\r'}) all[static_cast<unsigned char>(c)] = Kind::blank;
  for (const char c : {'{', '}', '[', ']', ',', ':'}) all[static_cast<unsigned char>(c)] = Kind::structural;
  all[std::size_t('"')] = Kind::quote;
  return all;
}();
Kind kind_of(char c) { return kinds[static_cast<unsigned char>(c)]; }
bool is_blank(char c) { return kind_of(c) == Kind::blank; }

std::string place(const Source& source, std::size_t at) {
  if (source.place == Place::byte) return format("byte {}", source.first_byte + at);
  if (source.place == Place::column) return format("column {}", at + 1);
  const std::string_view before = source.text.substr(0, at);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto start = before.rfind('\n');
  return format("line {}, column {}", line, at - (start == std::string_view::npos ? 0 : start + 1) + 1);
}

[[noreturn]] void refuse(const Source& source, std::size_t at, std::string_view why) {
  throw DataError(format("{}: {}: {}", source.file, place(source, at), why));
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

/// Refuses the first piece of [begin, end) that breaks a limit: nlohmann's lexer would store a piece of any length.
void check_pieces(const Source& source, std::size_t begin, std::size_t end) {
  std::size_t depth = 0;
  for (std::size_t i = begin; i < end;) {
    const std::size_t next = piece_end(source.text, i, end);
    const std::string_view piece = source.text.substr(i, next - i);
    if (piece.size() > source.limits.piece) {
      const std::string most = grouped((long long)source.limits.piece);
      refuse(source, i, format("a string, a number or a run of blanks may have at most {} bytes, this one has more", most));
    }
    if (piece[0] == '{' || piece[0] == '[') ++depth;
    if ((piece[0] == '}' || piece[0] == ']') && depth > 0) --depth;
    if (depth > source.limits.depth) refuse(source, i, format("objects and arrays may be nested {} deep, not deeper", source.limits.depth));
    i = next;
  }
}

/// Passes nlohmann's events on within the limits, and keeps its verdict on a broken text. The names are those of its SAX interface.
class Relay {
 public:
  Relay(const Source& source, std::size_t begin, std::size_t end, Events& to) : source_(source), begin_(begin), end_(end), to_(to) {}

  bool null() { return count(), to_.on_null(), true; }
  bool boolean(bool x) { return count(), to_.on_bool(x), true; }
  bool number_integer(std::int64_t x) { return count(), to_.on_negative(x), true; }
  bool number_unsigned(std::uint64_t x) { return count(), to_.on_integer(x), true; }
  bool number_float(double x, const std::string&) { return count(), to_.on_real(x), true; }
  bool string(std::string& x) { return count(), to_.on_string(x), true; }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(), to_.on_begin('{'), true; }
  bool key(std::string& x) { return to_.on_key(x), true; }
  bool end_object() { return --depth_, to_.on_end('}'), true; }
  bool start_array(std::size_t) { return open(), to_.on_begin('['), true; }
  bool end_array() { return --depth_, to_.on_end(']'), true; }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& e) {
    refuse(source_, begin_ + (position == 0 ? 0 : position - 1), "not valid JSON: " + short_reason(e.what()));
  }

 private:
  void count() {
    if (++values_ > source_.limits.values) {
      const std::string most = grouped((long long)source_.limits.values);
      throw DataError(format("{}: the text may have at most {} JSON values, it has more", source_.file, most));
    }
  }
  void open() {
    count();
    if (++depth_ > source_.limits.depth) check_pieces(source_, begin_, end_);  // throws, with the place
  }

  const Source& source_;
  std::size_t begin_, end_, values_ = 0, depth_ = 0;
  Events& to_;
};

}  // namespace

void read(const Source& source, Events& events) {
  const std::string_view text = source.text;
  if (text.size() > source.limits.bytes) {
    throw DataError(format("{}: the text may have at most {} bytes, it has {}", source.file, grouped((long long)source.limits.bytes),
                           grouped((long long)text.size())));
  }
  std::size_t begin = 0, end = text.size();
  while (begin < end && is_blank(text[begin])) ++begin;
  while (end > begin && is_blank(text[end - 1])) --end;
  if (begin == end || text[begin] != '{') refuse(source, begin, "a JSON object must begin here, in UTF-8 without byte order mark");

  const std::string_view object = text.substr(begin, end - begin);
  if (const auto nul = object.find('\0'); nul != object.npos) refuse(source, begin + nul, "a NUL byte cannot be part of JSON");
  if (object.size() > source.limits.piece) check_pieces(source, begin, end);
  Relay relay(source, begin, end, events);
  nlohmann::json::sax_parse(object.begin(), object.end(), &relay);
}

std::string quoted(std::string_view s, Invalid invalid) {
  using Handler = nlohmann::json::error_handler_t;
  try {
    return nlohmann::json(s).dump(-1, ' ', false, invalid == Invalid::refuse ? Handler::strict : Handler::replace);
  } catch (const nlohmann::json::exception&) {
    throw ContractError(format("JSON text must be UTF-8, got '{}'", printable(s)));
  }
}

std::string real_text(double x) {
  check(std::isfinite(x), "a JSON number must be finite, got {}", x);
  // An exponent below 1e-4 and from 1e16, as Python's repr has it.
  const bool plain = x == 0 || (std::fabs(x) >= 1e-4 && std::fabs(x) < 1e16);
  char buffer[40];
  const auto form = plain ? std::chars_format::fixed : std::chars_format::scientific;
  std::string out(buffer, std::to_chars(buffer, buffer + sizeof buffer, x, form).ptr);
  return out.find_first_of(".e") == std::string::npos ? out + ".0" : out;
}

}  // namespace octet::json
