#include "octet/json/value.hpp"

#include <algorithm>
#include <cmath>

#include "octet/base/check.hpp"
#include "octet/base/file.hpp"

namespace octet::json {

/// Builds a Value from the events of one text.
class Builder : public Events {
 public:
  explicit Builder(const Source& source) : source_(source) { open_.reserve(8); }
  Value result() { return std::move(root_); }

  void on_null() override { place(std::monostate()); }
  void on_bool(bool x) override { place(x); }
  void on_negative(std::int64_t x) override { place(x); }
  void on_integer(std::uint64_t x) override { x <= std::uint64_t(INT64_MAX) ? place(std::int64_t(x)) : place(double(x)); }
  void on_real(double x) override { place(x); }
  void on_string(std::string& x) override { place(std::move(x)); }
  void on_key(std::string& key) override { std::get<Object>(open_.back()->value_).push_back({std::move(key), {}}); }
  void on_begin(char bracket) override { open_.push_back(bracket == '{' ? &place(Object()) : &place(Array())); }
  void on_end(char bracket) override {
    if (bracket == '}') require_unique(std::get<Object>(open_.back()->value_));
    open_.pop_back();
  }

 private:
  /// Stores the next value and returns its place, which moves only after it is closed.
  template <class T>
  Value& place(T x) {
    Value& out = next();
    out.value_.template emplace<T>(std::move(x));
    return out;
  }
  Value& next() {
    if (open_.empty()) return root_;
    if (auto* array = std::get_if<Array>(&open_.back()->value_)) return array->emplace_back();
    return std::get<Object>(open_.back()->value_).back().value;
  }

  void require_unique(const Object& members) {
    names_.clear();
    names_.reserve(members.size());
    for (const Member& m : members) names_.push_back(m.name);
    std::sort(names_.begin(), names_.end());
    const auto twice = std::adjacent_find(names_.begin(), names_.end());
    if (twice != names_.end())
      throw DataError(format("{}: the key \"{}\" occurs twice in one object; remove one", source_.file, printable(*twice)));
  }

  const Source& source_;
  Value root_;
  std::vector<Value*> open_;  // the objects and arrays that are not closed yet, outermost first
  std::vector<std::string_view> names_;
};

namespace {

/// Characters of a string that a message shows.
constexpr std::size_t most_shown = 80;

bool plain(const Value& x) { return !x.array() && !x.object(); }

class Writer {
 public:
  explicit Writer(Invalid invalid) : invalid_(invalid) {}

  void put(const Value& x, Layout layout, std::size_t indent) {
    if (x.is_null()) out += "null";
    else if (const auto* b = x.boolean()) out += *b ? "true" : "false";
    else if (const auto* i = x.integer()) out += std::to_string(*i);
    else if (const auto* d = x.real()) out += number(*d, layout);
    else if (const auto* s = x.text()) out += quoted(*s, invalid_);
    else if (const auto* a = x.array()) {
      const bool one_line = layout == Layout::line || std::all_of(a->begin(), a->end(), plain);
      items("[]", *a, layout, one_line, indent, [&](const Value& entry) { put(entry, layout, indent + 2); });
    } else {
      items("{}", *x.object(), layout, layout == Layout::line, indent, [&](const Member& m) {
        out.append(quoted(m.name, invalid_)).append(layout == Layout::line ? ":" : ": ");
        put(m.value, layout, indent + 2);
      });
    }
  }

  std::string out;

 private:
  std::string number(double x, Layout layout) const {
    if (!std::isfinite(x) && invalid_ == Invalid::replace) return "null";
    const bool negative_zero = x == 0 && std::signbit(x);  // "-0" would be read as an integer
    return layout == Layout::line && std::isfinite(x) && !negative_zero ? shortest(x) : real_text(x);
  }

  template <class Items, class Put>
  void items(const char* brackets, const Items& items, Layout layout, bool one_line, std::size_t indent, Put put_item) {
    out += brackets[0];
    bool first = true;
    for (const auto& item : items) {
      if (!first) out += one_line && layout == Layout::indented ? ", " : ",";
      if (!one_line) out.append(1, '\n').append(indent + 2, ' ');
      put_item(item);
      first = false;
    }
    if (!one_line && !first) out.append(1, '\n').append(indent, ' ');
    out += brackets[1];
  }

  Invalid invalid_;
};

}  // namespace

Value::Value(float x) : value_(std::isfinite(x) ? *parse_number(shortest(x)) : double(x)) {}

const Value* Value::find(std::string_view name) const {
  if (const auto* members = object())
    for (const Member& m : *members)
      if (m.name == name) return &m.value;
  return nullptr;
}

Value& Value::set(std::string_view name, Value value) {
  auto* members = std::get_if<Object>(&value_);
  check(members != nullptr, "json: only an object has members, \"{}\" is set in {}", name, described());
  const auto at = std::find_if(members->begin(), members->end(), [&](const Member& m) { return m.name == name; });
  if (at != members->end()) at->value = std::move(value);
  else members->push_back({std::string(name), std::move(value)});
  return *this;
}

std::string Value::described() const {
  if (const auto* s = text()) return format("the string \"{}\"", printable(*s, most_shown));
  if (const auto* a = array()) return format("an array of {} values", a->size());
  if (object()) return "an object";
  if (real() && !std::isfinite(*real())) return to_text(*real());
  return dump(Layout::indented);
}

std::string Value::dump(Layout layout, Invalid invalid) const {
  Writer writer(invalid);
  writer.put(*this, layout, 0);
  return std::move(writer.out);
}

Value parse(const Source& source) {
  Builder builder(source);
  read(source, builder);
  return builder.result();
}

Value load(const std::string& path, const Limits& limits, Link link) {
  const std::string text = read_file(path, limits.bytes, link);
  return parse({.text = text, .file = printable(path), .limits = limits});
}

}  // namespace octet::json
