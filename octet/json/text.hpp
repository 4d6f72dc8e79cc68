#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace octet::io {

/// A JSON text of unknown origin, and how messages name its places.
struct JsonText {
  std::string_view text;
  std::string file;                 // as messages show it
  std::size_t first_byte = 0;       // where `text` begins in the file: 0 = places are "line 2, column 7", otherwise "byte 95"
  std::size_t max_depth = 32;       // objects and arrays within one another
  std::size_t max_piece = 1 << 20;  // bytes of one string, one number or one run of blanks
};

/// Receives a JSON text piece by piece. A handler that dislikes a piece throws; the error leaves read_json() as it is.
/// Strings may be moved from.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual void on_null() = 0;
  virtual void on_bool(bool) = 0;
  virtual void on_negative(std::int64_t) = 0;  // an integer written with a minus sign, -0 too
  virtual void on_integer(std::uint64_t) = 0;  // any other integer below 2^64
  virtual void on_real(double) = 0;            // a point, an exponent, or an integer too large for the two above
  virtual void on_string(std::string&) = 0;
  virtual void on_key(std::string&) = 0;    // comes before its value; keys of one object may repeat: the handler decides
  virtual void on_begin(char bracket) = 0;  // '{' or '['
  virtual void on_end(char bracket) = 0;    // '}' or ']'
};

/// Shows `json`, whose root must be an object, to `events`. Strict RFC 8259: UTF-8 without byte order mark, no comments, no NaN, no
/// trailing bytes but blanks. Needs memory for one piece at a time. Throws DataError with file and place.
void read_json(const JsonText& json, JsonEvents& events);

/// `s` as a JSON string, quotes included. Throws ContractError when it is not UTF-8.
std::string quote_json(std::string_view s);
/// The shortest decimal that reads back as x, always with a point or an exponent. Throws ContractError unless finite.
std::string number_json(double x);

}  // namespace octet::io
