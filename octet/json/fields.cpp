#include "octet/json/fields.hpp"

#include <cmath>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"

namespace octet::json {
namespace {

std::string range_text(std::string_view what, std::int64_t low, std::int64_t high) {
  return high == Fields::no_bound ? format("{} of at least {}", what, low) : format("{} from {} to {}", what, low, high);
}

bool in_range(const std::int64_t* x, std::int64_t low, std::int64_t high) { return x != nullptr && *x >= low && *x <= high; }

/// The value of a number; false for other types.
bool number_of(const Value& x, double& out) {
  if (const auto* d = x.real()) out = *d;
  else if (const auto* i = x.integer()) out = double(*i);
  else return false;
  return true;
}

/// The same, NaN for null.
bool number_or_nan_of(const Value& x, double& out) {
  if (!x.is_null()) return number_of(x, out);
  out = NAN;
  return true;
}

/// To nearest. A plain cast of a magnitude beyond FP32 is undefined: the nine digits of its largest number are one, and a file from
/// elsewhere may have others.
float narrowed(double x) {
  constexpr double largest = 0x1.fffffep127, infinite = 0x1.ffffffp127;  // from which nearest is infinity
  if (!(std::fabs(x) > largest)) return float(x);
  return float(std::copysign(std::fabs(x) < infinite ? largest : double(INFINITY), x));
}

}  // namespace

Fields::Fields(const Value& object, std::string file, std::string path) : object_(&object), file_(std::move(file)), path_(std::move(path)) {
  if (!object.object()) throw DataError(format("{}: the root must be an object, got {}", file_, object.described()));
}

bool Fields::has(std::string_view key) const { return find_not_null(key) != nullptr; }

const Value* Fields::find_not_null(std::string_view key) const {
  const Value* x = object_->find(key);
  return x != nullptr && !x->is_null() ? x : nullptr;
}

void Fields::refuse(std::string_view key, std::string_view wanted) const {
  const Value* x = object_->find(key);
  refuse(key, wanted, x ? "got " + x->described() : "it is missing");
}

void Fields::refuse_entry(std::string_view key, std::string_view wanted, const Value& entry) const {
  refuse(key, wanted, "it contains " + entry.described());
}

void Fields::refuse(std::string_view key, std::string_view wanted, std::string_view found) const {
  throw DataError(format("{}: {}{} must be {}, {}", file_, printable(path_), printable(key), wanted, found));
}

const Value& Fields::value(std::string_view key) const {
  const Value* x = object_->find(key);
  if (x == nullptr) refuse(key, "present");
  return *x;
}

std::int64_t Fields::integer(std::string_view key, std::int64_t low, std::int64_t high) const {
  const Value* x = find_not_null(key);
  if (x == nullptr || !in_range(x->integer(), low, high)) refuse(key, range_text("an integer", low, high));
  return *x->integer();
}

double Fields::number(std::string_view key, double low, double high) const {
  const Value* x = find_not_null(key);
  double out = 0;
  if (x == nullptr || !number_of(*x, out) || !(out >= low && out <= high)) refuse(key, format("a number from {} to {}", low, high));
  return out;
}

double Fields::number_or_nan(std::string_view key) const {
  const Value* x = object_->find(key);
  double out = 0;
  if (x == nullptr || !number_or_nan_of(*x, out)) refuse(key, "a number or null");
  return out;
}

bool Fields::boolean(std::string_view key) const {
  const Value* x = find_not_null(key);
  if (x == nullptr || !x->boolean()) refuse(key, "true or false");
  return *x->boolean();
}

const std::string& Fields::text(std::string_view key) const {
  const Value* x = find_not_null(key);
  if (x == nullptr || !x->text()) refuse(key, "a string");
  return *x->text();
}

std::int64_t Fields::integer_or(std::string_view key, std::int64_t otherwise, std::int64_t low, std::int64_t high) const {
  return has(key) ? integer(key, low, high) : otherwise;
}
double Fields::number_or(std::string_view key, double otherwise, double low, double high) const {
  return has(key) ? number(key, low, high) : otherwise;
}
bool Fields::boolean_or(std::string_view key, bool otherwise) const { return has(key) ? boolean(key) : otherwise; }
std::string Fields::text_or(std::string_view key, std::string_view otherwise) const {
  return has(key) ? text(key) : std::string(otherwise);
}

const Array& Fields::array(std::string_view key, std::string_view wanted) const {
  const Value* x = find_not_null(key);
  if (x == nullptr || !x->array()) refuse(key, wanted);
  return *x->array();
}

std::vector<std::int64_t> Fields::integers(std::string_view key, std::int64_t low, std::int64_t high) const {
  const std::string wanted = range_text("an array of integers", low, high);
  const Array& entries = array(key, wanted);
  std::vector<std::int64_t> out;
  out.reserve(entries.size());
  for (const Value& x : entries) {
    if (!in_range(x.integer(), low, high)) refuse_entry(key, wanted, x);
    out.push_back(*x.integer());
  }
  return out;
}

std::vector<float> Fields::numbers_or_nan(std::string_view key) const {
  constexpr std::string_view wanted = "an array of numbers or null";
  const Array& entries = array(key, wanted);
  std::vector<float> out;
  out.reserve(entries.size());
  for (const Value& x : entries) {
    double number = 0;
    if (!number_or_nan_of(x, number)) refuse_entry(key, wanted, x);
    out.push_back(narrowed(number));
  }
  return out;
}

std::vector<std::string> Fields::texts(std::string_view key) const {
  constexpr std::string_view wanted = "an array of strings";
  std::vector<std::string> out;
  for (const Value& x : array(key, wanted)) {
    if (!x.text()) refuse_entry(key, wanted, x);
    out.push_back(*x.text());
  }
  return out;
}

Fields Fields::object(std::string_view key) const {
  const Value* x = find_not_null(key);
  if (x == nullptr || !x->object()) refuse(key, "an object");
  return {*x, file_, format("{}{}.", path_, key)};
}

std::vector<Fields> Fields::objects(std::string_view key) const {
  constexpr std::string_view wanted = "an array of objects";
  std::vector<Fields> out;
  for (const Value& x : array(key, wanted)) {
    if (!x.object()) refuse_entry(key, wanted, x);
    out.push_back({x, file_, format("{}{}[{}].", path_, key, out.size())});
  }
  return out;
}

}  // namespace octet::json
