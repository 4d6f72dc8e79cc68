#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace octet::json {

/// Beyond these a text is refused before it costs memory.
struct Limits {
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  std::size_t bytes = std::size_t(1) << 20;
  std::size_t values = std::size_t(1) << 18;  // of any type, in all
  std::size_t depth = 32;                     // nested objects and arrays
  std::size_t piece = std::size_t(1) << 20;   // bytes of one string, one number or one run of blanks
};

/// How messages show a position in a text.
enum class Place : std::uint8_t { line_and_column, column, byte };

/// A JSON text of unknown origin.
struct Source {
  std::string_view text;
  std::string file;  // as messages show it
  Limits limits{};
  Place place = Place::line_and_column;
  std::size_t first_byte = 0;  // offset of `text` in the file, for Place::byte
};

/// Receives a JSON text piece by piece. A handler that refuses a piece throws; read() does not catch the error.
/// Strings may be moved from.
class Events {
 public:
  virtual ~Events() = default;
  virtual void on_null() = 0;
  virtual void on_bool(bool) = 0;
  virtual void on_negative(std::int64_t) = 0;  // an integer written with a minus sign, -0 too
  virtual void on_integer(std::uint64_t) = 0;  // any other integer below 2^64
  virtual void on_real(double) = 0;            // a point, an exponent, or an integer too large for the two above
  virtual void on_string(std::string&) = 0;
  virtual void on_key(std::string&) = 0;    // before its value; keys of one object may repeat: the handler decides
  virtual void on_begin(char bracket) = 0;  // '{' or '['
  virtual void on_end(char bracket) = 0;    // '}' or ']'
};

/// Parses `source`, whose root must be an object. Strict RFC 8259: UTF-8 without byte order mark, no comments, no NaN, only blanks after
/// the root. Needs memory for one piece at a time. Throws DataError "<file>: <place>: ...".
void read(const Source& source, Events& events);

/// How a writer handles values that JSON cannot represent: a number that is not finite, a string that is not UTF-8.
enum class Invalid : std::uint8_t {
  refuse,   // ContractError
  replace,  // null; U+FFFD for each invalid byte
};

/// `s` as a JSON string, with quotes.
std::string quoted(std::string_view s, Invalid = Invalid::refuse);
/// The shortest decimal that reads back as x, always with a point or an exponent: 2.0, 1e-05. Throws ContractError unless x is finite.
std::string real_text(double x);

}  // namespace octet::json
