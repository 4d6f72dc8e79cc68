#include "octet/json/fields.hpp"

#include <cmath>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"

namespace octet {
namespace {

/// Whether x is a number or null; `out` is then its value, NaN for null.
bool number_of(const Json& x, double& out) {
  if (x.is_null()) out = NAN;
  else if (const auto* i = x.integer()) out = double(*i);
  else if (const auto* d = x.real()) out = *d;
  else return false;
  return true;
}

/// A magnitude beyond FP32 (a hostile file: no writer of ours has one) becomes infinite, where a plain cast is undefined.
float narrowed(double x) { return std::fabs(x) > 0x1.fffffep127 ? std::copysign(INFINITY, float(x > 0) - float(x < 0)) : float(x); }

}  // namespace

JsonFields::JsonFields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object.object()) throw DataError(format("{}: wanted an object, got {}", where_, object.kind()));
}

void JsonFields::refuse(std::string_view name, const std::string& why) const { throw DataError(format("{}: {}: {}", where_, name, why)); }

void JsonFields::refuse_kind(std::string_view name, std::string_view wanted, const Json& got) const {
  refuse(name, format("wanted {}, got {}", wanted, got.kind()));
}

const Json& JsonFields::value(std::string_view name) const {
  const Json* found = object_.find(name);
  if (!found) refuse(name, "is missing");
  return *found;
}

double JsonFields::number(std::string_view name) const {
  const Json& x = value(name);
  double out = 0;
  if (!number_of(x, out)) refuse_kind(name, "a number", x);
  return out;
}

std::int64_t JsonFields::count(std::string_view name) const {
  const Json& x = value(name);
  if (!x.integer()) refuse_kind(name, "a whole number", x);
  if (*x.integer() < 0) refuse(name, format("wanted at least 0, got {}", *x.integer()));
  return *x.integer();
}

std::int64_t JsonFields::count_up_to(std::string_view name, std::int64_t most) const {
  const std::int64_t n = count(name);
  if (n > most) refuse(name, format("wanted at most {}, got {}", most, n));
  return n;
}

bool JsonFields::boolean(std::string_view name) const {
  const Json& x = value(name);
  if (!x.boolean()) refuse_kind(name, "true or false", x);
  return *x.boolean();
}

const std::string& JsonFields::text(std::string_view name) const {
  const Json& x = value(name);
  if (!x.text()) refuse_kind(name, "a text", x);
  return *x.text();
}

const Json::Array& JsonFields::array(std::string_view name) const {
  const Json& x = value(name);
  if (!x.array()) refuse_kind(name, "an array", x);
  return *x.array();
}

std::vector<float> JsonFields::numbers(std::string_view name) const {
  std::vector<float> out;
  for (const Json& x : array(name)) {
    double number = 0;
    if (!number_of(x, number)) refuse_kind(name, "numbers", x);
    out.push_back(narrowed(number));
  }
  return out;
}

std::vector<std::int64_t> JsonFields::counts(std::string_view name) const {
  std::vector<std::int64_t> out;
  for (const Json& x : array(name)) {
    if (!x.integer() || *x.integer() < 0) refuse_kind(name, "whole numbers of at least 0", x);
    out.push_back(*x.integer());
  }
  return out;
}

std::vector<std::string> JsonFields::texts(std::string_view name) const {
  std::vector<std::string> out;
  for (const Json& x : array(name)) {
    if (!x.text()) refuse_kind(name, "texts", x);
    out.push_back(*x.text());
  }
  return out;
}

JsonFields JsonFields::object(std::string_view name) const { return JsonFields(value(name), format("{}: {}", where_, name)); }

std::vector<JsonFields> JsonFields::objects(std::string_view name) const {
  std::vector<JsonFields> out;
  for (const Json& x : array(name)) out.emplace_back(x, format("{}: {}[{}]", where_, name, out.size()));
  return out;
}

}  // namespace octet
