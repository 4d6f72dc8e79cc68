#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "octet/json/value.hpp"

namespace octet::json {

/// Typed reading of an object's members. A getter throws DataError when the key is missing or null, has another type, or is out of
/// [low, high]: "config.json: rope_scaling.factor must be a number from 1 to 64, got the string "x"". The *_or form returns `otherwise`
/// for a missing key or null. Keys that are not read are ignored. Refers to the object, which must outlive it.
class Fields {
 public:
  static constexpr std::int64_t no_bound = std::numeric_limits<std::int64_t>::max();

  /// `file` is the name in messages. Throws DataError unless `object` is an object.
  Fields(const Value& object, std::string file) : Fields(object, std::move(file), "") {}

  /// Present and not null.
  bool has(std::string_view key) const;
  /// 7.0 is no integer.
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high = no_bound) const;
  std::int64_t integer_or(std::string_view key, std::int64_t otherwise, std::int64_t low, std::int64_t high = no_bound) const;
  std::int64_t count(std::string_view key) const { return integer(key, 0); }
  /// An integer is a number too.
  double number(std::string_view key, double low, double high) const;
  double number_or(std::string_view key, double otherwise, double low, double high) const;
  /// NaN for null, as Invalid::replace writes it.
  double number_or_nan(std::string_view key) const;
  bool boolean(std::string_view key) const;
  bool boolean_or(std::string_view key, bool otherwise) const;
  const std::string& text(std::string_view key) const;
  std::string text_or(std::string_view key, std::string_view otherwise) const;
  std::vector<std::int64_t> integers(std::string_view key, std::int64_t low, std::int64_t high = no_bound) const;
  /// NaN for null entries. A magnitude beyond FP32 becomes infinite.
  std::vector<float> numbers_or_nan(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;
  /// Messages show its keys as "key.inner".
  Fields object(std::string_view key) const;
  /// One per entry of an array of objects: "key[0].inner".
  std::vector<Fields> objects(std::string_view key) const;

  /// The value of a key that is present; null is a value.
  const Value& value(std::string_view key) const;
  const Object& members() const { return *object_->object(); }

  /// Throws the getters' DataError: "<file>: <key> must be <wanted>, got <value>".
  [[noreturn]] void refuse(std::string_view key, std::string_view wanted) const;
  /// The same for an array with an entry that is refused: "<file>: <key> must be <wanted>, it contains <entry>".
  [[noreturn]] void refuse_entry(std::string_view key, std::string_view wanted, const Value& entry) const;

 private:
  Fields(const Value& object, std::string file, std::string path);
  const Value* find_not_null(std::string_view key) const;
  const Array& array(std::string_view key, std::string_view wanted) const;
  [[noreturn]] void refuse(std::string_view key, std::string_view wanted, std::string_view found) const;

  const Value* object_;
  std::string file_, path_;  // path_: "" or "rope_scaling."
};

}  // namespace octet::json
