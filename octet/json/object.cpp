#include "octet/json/object.hpp"

#include <algorithm>
#include <limits>

#include "octet/base/check.hpp"
#include "octet/base/file.hpp"
#include "octet/json/text.hpp"

namespace octet::io {
namespace {
constexpr std::size_t max_file_bytes = std::size_t(16) << 20, max_values = std::size_t(1) << 17;

/// What a message says came.
std::string shown(const JsonValue& value) {
  struct {
    std::string operator()(std::monostate) const { return "null"; }
    std::string operator()(bool x) const { return to_text(x); }
    std::string operator()(std::int64_t x) const { return to_text(x); }
    std::string operator()(double x) const { return number_json(x); }
    std::string operator()(const std::string& x) const {
      return format("the string \"{}\"", printable(x.size() > 80 ? x.substr(0, 80) + "..." : x));
    }
    std::string operator()(const JsonArray& x) const { return format("an array of {} values", x.size()); }
    std::string operator()(const JsonObject&) const { return "an object"; }
  } text;
  return std::visit(text, value.held);
}

bool is_scalar(const JsonValue& value) {
  return !std::holds_alternative<JsonArray>(value.held) && !std::holds_alternative<JsonObject>(value.held);
}

/// `open`, the items on lines of their own (or on one line), `close`.
template <class Item>
void append_items(std::string& out, const char* brackets, std::size_t n, bool one_line, std::size_t indent, Item item) {
  out += brackets[0];
  for (std::size_t i = 0; i < n; ++i) {
    if (!one_line) out.append(1, '\n').append(indent + 2, ' ');
    item(i);
    if (i + 1 < n) out += one_line ? ", " : ",";
  }
  if (!one_line && n > 0) out.append(1, '\n').append(indent, ' ');
  out += brackets[1];
}

void append(std::string& out, const JsonValue& value, std::size_t indent) {
  if (const auto* object = std::get_if<JsonObject>(&value.held)) {
    append_items(out, "{}", object->keys().size(), false, indent, [&](std::size_t i) {
      out += quote_json(object->keys()[i]) + ": ";
      append(out, object->values()[i], indent + 2);
    });
  } else if (const auto* array = std::get_if<JsonArray>(&value.held)) {
    const bool one_line = std::all_of(array->begin(), array->end(), is_scalar);
    append_items(out, "[]", array->size(), one_line, indent, [&](std::size_t i) { append(out, (*array)[i], indent + 2); });
  } else if (const auto* text = std::get_if<std::string>(&value.held)) {
    out += quote_json(*text);
  } else {
    out += shown(value);
  }
}

}  // namespace

/// Builds the tree from the events of one text.
class JsonBuilder : public JsonEvents {
 public:
  explicit JsonBuilder(const std::string& file) : file_(file) {}
  JsonObject result() { return std::move(std::get<JsonObject>(root_.held)); }

  void on_null() override { place({}); }
  void on_bool(bool x) override { place(x); }
  void on_negative(std::int64_t x) override { place(x); }
  void on_integer(std::uint64_t x) override {
    place(x <= std::uint64_t(std::numeric_limits<std::int64_t>::max()) ? JsonValue(std::int64_t(x)) : JsonValue(double(x)));
  }
  void on_real(double x) override { place(x); }
  void on_string(std::string& x) override { place(std::move(x)); }
  void on_key(std::string& key) override { std::get<JsonObject>(open_.back()->held).keys_.push_back(std::move(key)); }
  void on_begin(char bracket) override { open_.push_back(&place(bracket == '{' ? JsonValue(JsonObject()) : JsonValue(JsonArray()))); }
  void on_end(char bracket) override {
    if (bracket == '}') refuse_repeated(std::get<JsonObject>(open_.back()->held).keys_);
    open_.pop_back();
  }

 private:
  JsonValue& place(JsonValue value) {
    if (++values_ > max_values)
      throw DataError(format("{}: at most {} JSON values can be read, this file has more", file_, grouped((long long)max_values)));
    if (open_.empty()) return root_ = std::move(value);
    auto* object = std::get_if<JsonObject>(&open_.back()->held);
    return (object ? object->values_ : std::get<JsonArray>(open_.back()->held)).emplace_back(std::move(value));
  }
  void refuse_repeated(const std::vector<std::string>& keys) const {
    std::vector<std::string_view> sorted(keys.begin(), keys.end());
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end())
      throw DataError(format("{}: the key \"{}\" stands twice in one object; remove one", file_, printable(*twice)));
  }

  std::string file_;
  JsonValue root_;
  std::vector<JsonValue*> open_;  // from the root inward; an open value's owner does not grow before it is closed
  std::size_t values_ = 0;
};

JsonObject JsonObject::load(const std::string& path) { return parse(read_file(path, max_file_bytes), printable(path)); }

JsonObject JsonObject::parse(std::string_view text, const std::string& file) {
  JsonBuilder builder(file);
  read_json({.text = text, .file = file}, builder);
  JsonObject out = builder.result();
  out.file_ = file;
  return out;
}

const JsonValue* JsonObject::find(std::string_view key) const {
  const auto at = std::find(keys_.begin(), keys_.end(), key);
  return at == keys_.end() ? nullptr : &values_[std::size_t(at - keys_.begin())];
}

const JsonValue& JsonObject::need(std::string_view key, std::string_view wanted) const {
  if (!has(key)) refuse(key, wanted);
  return *find(key);
}

void JsonObject::refuse(std::string_view key, std::string_view wanted) const {
  const JsonValue* value = find(key);
  refuse(key, wanted, value ? format("got {}", shown(*value)) : "it is missing");
}

void JsonObject::refuse(std::string_view key, std::string_view wanted, std::string_view came) const {
  throw DataError(format("{}: {}{} must be {}, {}", file_, printable(path_), printable(key), wanted, came));
}

bool JsonObject::has(std::string_view key) const {
  const JsonValue* value = find(key);
  return value != nullptr && !std::holds_alternative<std::monostate>(value->held);
}

std::int64_t JsonObject::integer(std::string_view key, std::int64_t low, std::int64_t high) const {
  const std::string wanted = format("an integer from {} to {}", low, high);
  const auto* x = std::get_if<std::int64_t>(&need(key, wanted).held);
  if (x == nullptr || *x < low || *x > high) refuse(key, wanted);
  return *x;
}

double JsonObject::number(std::string_view key, double low, double high) const {
  const std::string wanted = format("a number from {} to {}", low, high);
  const JsonValue& value = need(key, wanted);
  const auto* whole = std::get_if<std::int64_t>(&value.held);
  const auto* real = std::get_if<double>(&value.held);
  if (whole == nullptr && real == nullptr) refuse(key, wanted);
  const double x = whole ? double(*whole) : *real;
  if (!(x >= low && x <= high)) refuse(key, wanted);
  return x;
}

bool JsonObject::boolean(std::string_view key) const {
  const auto* x = std::get_if<bool>(&need(key, "true or false").held);
  if (x == nullptr) refuse(key, "true or false");
  return *x;
}

std::string JsonObject::text(std::string_view key) const {
  const auto* x = std::get_if<std::string>(&need(key, "a string").held);
  if (x == nullptr) refuse(key, "a string");
  return *x;
}

std::int64_t JsonObject::integer_or(std::string_view key, std::int64_t otherwise, std::int64_t low, std::int64_t high) const {
  return has(key) ? integer(key, low, high) : otherwise;
}
double JsonObject::number_or(std::string_view key, double otherwise, double low, double high) const {
  return has(key) ? number(key, low, high) : otherwise;
}
bool JsonObject::boolean_or(std::string_view key, bool otherwise) const { return has(key) ? boolean(key) : otherwise; }
std::string JsonObject::text_or(std::string_view key, std::string_view otherwise) const {
  return has(key) ? text(key) : std::string(otherwise);
}

std::vector<std::int64_t> JsonObject::integers(std::string_view key, std::int64_t low, std::int64_t high) const {
  const std::string wanted = format("an array of integers from {} to {}", low, high);
  const auto* array = std::get_if<JsonArray>(&need(key, wanted).held);
  if (array == nullptr) refuse(key, wanted);
  std::vector<std::int64_t> out;
  for (const JsonValue& value : *array) {
    const auto* x = std::get_if<std::int64_t>(&value.held);
    if (x == nullptr || *x < low || *x > high) refuse(key, wanted, format("it holds {}", shown(value)));
    out.push_back(*x);
  }
  return out;
}

std::vector<std::string> JsonObject::texts(std::string_view key) const {
  const auto* array = std::get_if<JsonArray>(&need(key, "an array of strings").held);
  if (array == nullptr) refuse(key, "an array of strings");
  std::vector<std::string> out;
  for (const JsonValue& value : *array) {
    const auto* x = std::get_if<std::string>(&value.held);
    if (x == nullptr) refuse(key, "an array of strings", format("it holds {}", shown(value)));
    out.push_back(*x);
  }
  return out;
}

JsonObject JsonObject::object(std::string_view key) const {
  const auto* x = std::get_if<JsonObject>(&need(key, "an object").held);
  if (x == nullptr) refuse(key, "an object");
  JsonObject out = *x;
  out.file_ = file_;
  out.path_ = path_ + std::string(key) + ".";
  return out;
}

std::string JsonObject::dump() const {
  std::string out;
  append(out, *this, 0);
  return out += '\n';
}

void JsonObject::save(const std::string& path) const { write_file(path, dump()); }

JsonObject& JsonObject::set(std::string_view key, JsonValue value) {
  const auto at = std::find(keys_.begin(), keys_.end(), key);
  if (at != keys_.end()) {
    values_[std::size_t(at - keys_.begin())] = std::move(value);
  } else {
    keys_.emplace_back(key);
    values_.push_back(std::move(value));
  }
  return *this;
}

}  // namespace octet::io
