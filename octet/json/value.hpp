#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "octet/base/regular_file.hpp"
#include "octet/json/text.hpp"

namespace octet::json {

class Value;
struct Member;
using Array = std::vector<Value>;
using Object = std::vector<Member>;

/// Layout of written JSON.
enum class Layout : std::uint8_t {
  line,      // one line without blanks; real numbers without fraction have no point
  indented,  // two spaces per level, each member and each array entry on its own line; arrays of plain values on one line
};

/// A JSON value that owns its parts. Objects keep the order of their members. Integers beyond int64 are stored as the nearest double.
class Value {
 public:
  Value() = default;  // null
  Value(bool x);
  template <std::integral T>
  requires(!std::same_as<T, bool>) Value(T x);
  Value(double x);
  /// The double of the shortest decimal that reads back as x: 0.1f is written as 0.1.
  Value(float x);
  Value(std::string x);
  Value(std::string_view x);
  Value(const char* x);
  Value(Array x);
  Value(Object x);

  bool is_null() const { return value_.index() == 0; }
  /// Null when the value is of another type.
  const bool* boolean() const { return std::get_if<bool>(&value_); }
  const std::int64_t* integer() const { return std::get_if<std::int64_t>(&value_); }
  const double* real() const { return std::get_if<double>(&value_); }
  const std::string* text() const { return std::get_if<std::string>(&value_); }
  const Array* array() const { return std::get_if<Array>(&value_); }
  const Object* object() const { return std::get_if<Object>(&value_); }
  /// The member of that name of an object, or null.
  const Value* find(std::string_view name) const;

  /// Replaces the member of that name, or adds it at the end. Throws ContractError unless this is an object.
  Value& set(std::string_view name, Value value);

  /// The value for messages: `the string "x"`, `an array of 3 values`, `7.5`.
  std::string described() const;
  /// The value as JSON, without a final newline.
  std::string dump(Layout = Layout::line, Invalid = Invalid::refuse) const;

 private:
  friend class Builder;
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

struct Member {
  std::string name;
  Value value;
};

// Here, since a variant can be made only of complete types.
inline Value::Value(bool x) : value_(x) {}
template <std::integral T>
requires(!std::same_as<T, bool>) Value::Value(T x) : value_(std::int64_t(x)) {}
inline Value::Value(double x) : value_(x) {}
inline Value::Value(std::string x) : value_(std::move(x)) {}
inline Value::Value(std::string_view x) : value_(std::string(x)) {}
inline Value::Value(const char* x) : value_(std::string(x)) {}
inline Value::Value(Array x) : value_(std::move(x)) {}
inline Value::Value(Object x) : value_(std::move(x)) {}

/// An array of `range`'s entries.
template <class Range>
Value array_of(const Range& range) {
  Array out;
  out.reserve(range.size());
  for (const auto& x : range) out.emplace_back(x);
  return out;
}

/// The object that `source` contains; see read(). Names within an object must be unique. Throws DataError "<file>: ...".
Value parse(const Source& source);
/// The same for the file at `path`. Throws IoError when it cannot be read.
Value load(const std::string& path, const Limits& = {}, Link = Link::follow);

}  // namespace octet::json
