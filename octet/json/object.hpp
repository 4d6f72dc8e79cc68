#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace octet::io {

struct JsonValue;

/// A JSON object, keys in order: a Hugging Face config.json as it is read and written. Reading is by typed getters that say what they
/// want; keys that nobody asks for are ignored. Every getter throws DataError with file and key when the key is missing (or null), has
/// another type, or is out of [low, high]; the *_or form gives `otherwise` for a missing key or null, and throws for the rest.
class JsonObject {
 public:
  JsonObject() = default;

  /// Reads a file of at most 16 MiB and 131,072 values. A key given twice, or anything that is not strict JSON, is a DataError.
  static JsonObject load(const std::string& path);
  /// The same from memory; `file` is the name in messages.
  static JsonObject parse(std::string_view text, const std::string& file);

  /// Present and not null.
  bool has(std::string_view key) const;
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high) const;
  std::int64_t integer_or(std::string_view key, std::int64_t otherwise, std::int64_t low, std::int64_t high) const;
  /// Integers count as numbers; a number written with a point is no integer.
  double number(std::string_view key, double low, double high) const;
  double number_or(std::string_view key, double otherwise, double low, double high) const;
  bool boolean(std::string_view key) const;
  bool boolean_or(std::string_view key, bool otherwise) const;
  std::string text(std::string_view key) const;
  std::string text_or(std::string_view key, std::string_view otherwise) const;
  std::vector<std::int64_t> integers(std::string_view key, std::int64_t low, std::int64_t high) const;
  std::vector<std::string> texts(std::string_view key) const;
  /// A copy that names its keys "key.inner" in messages.
  JsonObject object(std::string_view key) const;

  /// Throws the DataError that a getter would throw: "config.json: hidden_act must be silu, got the string "relu"".
  [[noreturn]] void refuse(std::string_view key, std::string_view wanted) const;

  const std::vector<std::string>& keys() const { return keys_; }
  /// In the order of keys().
  const std::vector<JsonValue>& values() const { return values_; }

  /// Adds the key at the end, or gives the one that is there a new value.
  JsonObject& set(std::string_view key, JsonValue value);

  /// Pretty-printed: two spaces a level, arrays of scalars on one line, a newline at the end. ContractError for a number that is
  /// not finite or text that is not UTF-8.
  std::string dump() const;
  /// dump() put at `path` atomically. IoError.
  void save(const std::string& path) const;

 private:
  friend class JsonBuilder;
  const JsonValue* find(std::string_view key) const;
  [[noreturn]] void refuse(std::string_view key, std::string_view wanted, std::string_view came) const;
  const JsonValue& need(std::string_view key, std::string_view wanted) const;

  std::vector<std::string> keys_;
  std::vector<JsonValue> values_;
  std::string file_, path_;  // path_: "" or "rope_scaling."
};

using JsonArray = std::vector<JsonValue>;

/// Any JSON value. Integers beyond 64 bits with sign are held as the nearest double.
struct JsonValue {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, JsonArray, JsonObject> held;

  JsonValue() = default;  // null
  JsonValue(bool x) : held(x) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) JsonValue(T x) : held(std::int64_t(x)) {}
  JsonValue(double x) : held(x) {}
  JsonValue(const char* x) : held(std::string(x)) {}
  JsonValue(std::string_view x) : held(std::string(x)) {}
  JsonValue(std::string x) : held(std::move(x)) {}
  JsonValue(JsonArray x) : held(std::move(x)) {}
  JsonValue(JsonObject x) : held(std::move(x)) {}
};

}  // namespace octet::io
