#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "octet/json/value.hpp"

namespace octet {

/// The members of a JSON object, read strictly: a missing name or a value of another type throws DataError
/// "<where>: <name>: wanted ..., got ...". Names that nobody asks for are ignored, so that a newer file can be read.
/// Refers to the object, which must outlive it.
class JsonFields {
 public:
  /// Throws DataError when `object` is none.
  JsonFields(const Json& object, std::string where);

  bool has(std::string_view name) const { return object_.find(name) != nullptr; }
  /// NaN for null.
  double number(std::string_view name) const;
  /// A whole number, at least 0.
  std::int64_t count(std::string_view name) const;
  /// The same, at most `most`.
  std::int64_t count_up_to(std::string_view name, std::int64_t most) const;
  bool boolean(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  /// NaN for null entries.
  std::vector<float> numbers(std::string_view name) const;
  std::vector<std::int64_t> counts(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
  JsonFields object(std::string_view name) const;
  /// One JsonFields for each entry of an array of objects.
  std::vector<JsonFields> objects(std::string_view name) const;
  const Json& value(std::string_view name) const;

  const Json::Object& members() const { return *object_.object(); }
  const std::string& where() const { return where_; }
  /// Throws DataError "<where>: <name>: <why>".
  [[noreturn]] void refuse(std::string_view name, const std::string& why) const;

 private:
  const Json::Array& array(std::string_view name) const;
  [[noreturn]] void refuse_kind(std::string_view name, std::string_view wanted, const Json& got) const;

  const Json& object_;
  std::string where_;
};

}  // namespace octet
