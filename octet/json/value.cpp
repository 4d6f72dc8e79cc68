#include "octet/json/value.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"

namespace octet {
namespace {

/// Builds a Json as the parser meets its parts. `open_` holds the arrays and objects that are not closed yet, outermost first.
class Builder {
 public:
  Builder(const std::string& where, const JsonLimits& limits) : where_(where), limits_(limits) {}

  // The names and signatures are those of nlohmann's SAX interface.
  bool null() { return add(Json()); }
  bool boolean(bool x) { return add(x); }
  bool number_integer(std::int64_t x) { return add(x); }
  bool number_unsigned(std::uint64_t x) { return x <= std::uint64_t(INT64_MAX) ? add(std::int64_t(x)) : add(double(x)); }
  bool number_float(double x, const std::string&) { return add(x); }
  bool string(std::string& x) { return add(std::move(x)); }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(true); }
  bool start_array(std::size_t) { return open(false); }
  bool key(std::string& name) {
    open_.back().name = std::move(name);
    return true;
  }
  bool end_object() { return shut(); }
  bool end_array() { return shut(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& e) {
    constexpr int number_overflow = 406;
    refuse(format(e.id == number_overflow ? "a number out of range at byte {}" : "not JSON at byte {}", position));
  }

  Json result() { return std::move(root_); }

 private:
  struct Open {
    bool object;
    std::string name;
    Json::Object members;
    Json::Array items;
  };

  [[noreturn]] void refuse(const std::string& why) const { throw DataError(where_ + ": " + why); }

  bool add(Json value) {
    if (++values_ > limits_.values) refuse(format("more than {} values", grouped((long long)limits_.values)));
    if (open_.empty()) root_ = std::move(value);
    else if (open_.back().object) open_.back().members.push_back({std::move(open_.back().name), std::move(value)});
    else open_.back().items.push_back(std::move(value));
    return true;
  }
  bool open(bool object) {
    if (open_.size() >= limits_.depth) refuse(format("nested deeper than {} levels", limits_.depth));
    open_.push_back({object, {}, {}, {}});
    return true;
  }
  bool shut() {
    Open last = std::move(open_.back());
    open_.pop_back();
    if (last.object) want_unique_names(last.members);
    return last.object ? add(std::move(last.members)) : add(std::move(last.items));
  }

  void want_unique_names(const Json::Object& members) const {
    std::vector<std::string_view> names;
    for (const auto& m : members) names.push_back(m.name);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) refuse(format("the name \"{}\" stands twice in one object", printable(twice->substr(0, 80))));
  }

  const std::string& where_;
  const JsonLimits& limits_;
  std::size_t values_ = 0;
  std::vector<Open> open_;
  Json root_;
};

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); }

bool plain(const Json& x) { return !x.array() && !x.object(); }

void dump_to(std::string& out, const Json& x, bool indented, int depth);

/// `items` between brackets: each on a line of its own when `spread`.
template <class Items, class Put>
void dump_items(std::string& out, const Items& items, const char* brackets, bool spread, int depth, Put put) {
  out += brackets[0];
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ',';
    if (spread) out += '\n', out.append(std::size_t(depth + 1) * 2, ' ');
    put(item);
    first = false;
  }
  if (spread && !first) out += '\n', out.append(std::size_t(depth) * 2, ' ');
  out += brackets[1];
}

void dump_to(std::string& out, const Json& x, bool indented, int depth) {
  if (const auto* b = x.boolean()) {
    out += *b ? "true" : "false";
  } else if (const auto* i = x.integer()) {
    out += std::to_string(*i);
  } else if (const auto* d = x.real()) {
    out += *d == 0 && std::signbit(*d) ? "-0.0" : shortest(*d);  // "-0" would be read as a whole number
  } else if (const auto* s = x.text()) {
    out += quoted(*s);
  } else if (const auto* a = x.array()) {
    const bool spread = indented && !std::all_of(a->begin(), a->end(), plain);
    dump_items(out, *a, "[]", spread, depth, [&](const Json& item) { dump_to(out, item, false, depth + 1); });
  } else if (const auto* o = x.object()) {
    dump_items(out, *o, "{}", indented, depth, [&](const JsonMember& m) {
      out += quoted(m.name) + (indented ? ": " : ":");
      dump_to(out, m.value, indented, depth + 1);
    });
  } else {
    out += "null";
  }
}

}  // namespace

Json::Json(double x) {
  if (std::isfinite(x)) value_ = x;
}

Json::Json(float x) {
  if (std::isfinite(x)) value_ = *parse_number(shortest(x));
}

const Json* Json::find(std::string_view name) const {
  if (const auto* members = object())
    for (const auto& m : *members)
      if (m.name == name) return &m.value;
  return nullptr;
}

std::string_view Json::kind() const {
  static constexpr std::string_view names[] = {"null", "a truth value", "a whole number", "a number", "a text", "an array", "an object"};
  return names[value_.index()];
}

std::string Json::dump(bool indented) const {
  std::string out;
  dump_to(out, *this, indented, 0);
  return out;
}

Json parse_json(std::string_view text, const std::string& where, const JsonLimits& limits) {
  if (text.size() > limits.bytes)
    throw DataError(
        format("{}: {} bytes where at most {} are read", where, grouped((long long)text.size()), grouped((long long)limits.bytes)));
  Builder builder(where, limits);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.result();
}

}  // namespace octet
