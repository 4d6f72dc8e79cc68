#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace octet {

struct JsonMember;

/// A JSON value that owns its parts. Objects keep the order in which their members were written.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<JsonMember>;

  Json() = default;  // null
  Json(bool x);
  Json(int x);
  Json(std::int64_t x);
  /// null where x is not finite.
  Json(double x);
  /// As the shortest decimal that reads back as this float.
  Json(float x);
  Json(std::string x);
  Json(const char* x);
  Json(Array x);
  Json(Object x);

  bool is_null() const { return value_.index() == 0; }
  /// Null when the value is of another type.
  const bool* boolean() const { return std::get_if<bool>(&value_); }
  const std::int64_t* integer() const { return std::get_if<std::int64_t>(&value_); }
  const double* real() const { return std::get_if<double>(&value_); }
  const std::string* text() const { return std::get_if<std::string>(&value_); }
  const Array* array() const { return std::get_if<Array>(&value_); }
  const Object* object() const { return std::get_if<Object>(&value_); }
  /// The member of that name of an object, or null.
  const Json* find(std::string_view name) const;

  /// "a number", "null", "an object": for messages.
  std::string_view kind() const;

  /// The value as text: on one line, or with members of objects on lines of their own, two spaces deeper (`indented`); arrays
  /// of plain values stay on one line. Bytes of a string that are not UTF-8 become U+FFFD.
  std::string dump(bool indented = false) const;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

struct JsonMember {
  std::string name;
  Json value;
};

// Here, since a variant can be made only of complete types.
inline Json::Json(bool x) : value_(x) {}
inline Json::Json(int x) : value_(std::int64_t(x)) {}
inline Json::Json(std::int64_t x) : value_(x) {}
inline Json::Json(std::string x) : value_(std::move(x)) {}
inline Json::Json(const char* x) : value_(std::string(x)) {}
inline Json::Json(Array x) : value_(std::move(x)) {}
inline Json::Json(Object x) : value_(std::move(x)) {}

/// An array of numbers, whatever their type.
template <class Range>
Json json_numbers(const Range& numbers) {
  Json::Array out;
  out.reserve(numbers.size());
  for (const auto& x : numbers) out.emplace_back(x);
  return out;
}

/// What parse_json accepts at most, so that a hostile file costs little.
struct JsonLimits {
  std::size_t bytes = std::size_t(1) << 20;
  std::size_t values = std::size_t(1) << 18;  // of any type, in all
  std::size_t depth = 12;
};

/// The value that `text` holds; JSON as RFC 8259, names unique within an object.
/// Throws DataError "<where>: <what is wrong, at which byte>". A number beyond the range of a double is refused.
Json parse_json(std::string_view text, const std::string& where, const JsonLimits& = {});

}  // namespace octet
