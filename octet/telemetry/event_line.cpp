#include "octet/telemetry/event_line.hpp"

#include "octet/base/text.hpp"
#include "octet/json/fields.hpp"
#include "octet/telemetry/event_fields.hpp"
#include "octet/telemetry/list_events.hpp"

namespace octet::telemetry {
namespace {

class Writer final : public EventVisitor {
 public:
  explicit Writer(const char* event) : object_{{"event", event}} {}
  json::Object take() { return std::move(object_); }

  void field(const Field& f, double& x) override { add(f, std::isfinite(x) ? json::Value(x) : json::Value()); }
  void field(const Field& f, std::int64_t& x) override { add(f, x); }
  void field(const Field& f, bool& x) override { add(f, x); }
  void field(const Field& f, std::string& x) override { add(f, x); }
  void field(const Field& f, Severity& x) override { add(f, name(x)); }
  void field(const Field& f, std::vector<float>& x) override { add(f, json::array_of(x)); }
  void field(const Field& f, std::vector<std::int64_t>& x) override { add(f, json::array_of(x)); }
  void field(const Field& f, std::vector<std::string>& x) override { add(f, json::array_of(x)); }

 private:
  void add(const Field& f, json::Value value) {
    if (!f.left_out) object_.push_back({f.name, std::move(value)});
  }

  json::Object object_;
};

/// The lists are ones for reading and writing, so they are not const. A Writer never writes to the event.
template <class E>
json::Object to_json(const E& e) {
  Writer writer(E::event);
  visit_fields(writer, const_cast<E&>(e));
  return writer.take();
}

class Reader final : public EventVisitor {
 public:
  explicit Reader(const json::Fields& line) : line_(line) {}

  void field(const Field& f, double& x) override {
    if (has(f)) x = line_.number_or_nan(f.name);
  }
  void field(const Field& f, std::int64_t& x) override {
    if (has(f)) x = line_.integer(f.name, f.low, f.high);
  }
  void field(const Field& f, bool& x) override {
    if (has(f)) x = line_.boolean(f.name);
  }
  void field(const Field& f, std::string& x) override {
    if (has(f)) x = line_.text(f.name);
  }
  void field(const Field& f, Severity& x) override {
    for (const Severity s : {Severity::info, Severity::warning, Severity::critical})
      if (line_.text(f.name) == name(s)) {
        x = s;
        return;
      }
    line_.refuse(f.name, "info, warning or critical");
  }
  void field(const Field& f, std::vector<float>& x) override {
    if (has(f)) x = line_.numbers_or_nan(f.name), judge(f, x.size());
  }
  void field(const Field& f, std::vector<std::int64_t>& x) override {
    if (has(f)) x = line_.integers(f.name, f.low, f.high), judge(f, x.size());
  }
  void field(const Field& f, std::vector<std::string>& x) override {
    if (has(f)) x = line_.texts(f.name), judge(f, x.size());
  }

 private:
  bool has(const Field& f) const { return !f.may_lack || line_.has(f.name); }
  void judge(const Field& f, std::size_t entries) const {
    if (f.entry == nullptr) return;
    if (!f.entries && entries == 0) line_.refuse(f.name, format("a list with an entry per {}", f.entry));
    if (f.entries && entries != *f.entries) line_.refuse(f.name, format("a list of {} entries, one per {}", *f.entries, f.entry));
  }

  const json::Fields& line_;
};

std::optional<Event> event_of(const json::Fields& line) {
  const std::string& name = line.text("event");
  std::optional<Event> out;
  each_event([&]<class E>(E e) {
    if (out || name != E::event) return;
    Reader reader(line);
    visit_fields(reader, e);
    out = std::move(e);
  });
  return out;
}

/// "step, scales or end": of every kind of event.
std::string names_of_events() {
  std::vector<std::string> names;
  each_event([&]<class E>(E) { names.push_back(E::event); });
  const std::string last = std::move(names.back());
  names.pop_back();
  return joined(names, ", ") + " or " + last;
}

}  // namespace

json::Object event_json(const Event& event) {
  return std::visit([](const auto& e) { return to_json(e); }, event);
}

std::string event_line(const Event& event) { return json::Value(event_json(event)).dump(json::Layout::line, json::Invalid::replace); }

std::string alert_message(const AlertEvent& event, const std::string& run, const std::string& folder) {
  json::Object o = to_json(event);
  o.insert(o.end(), {{"run", run}, {"folder", folder}});
  return json::Value(std::move(o)).dump(json::Layout::line, json::Invalid::replace) + '\n';
}

Event parse_event(std::string_view line, const std::string& where) {
  const json::Value object = json::parse({.text = line, .file = where, .place = json::Place::column});
  const json::Fields f(object, where);
  if (std::optional<Event> event = event_of(f)) return std::move(*event);
  f.refuse("event", names_of_events());
}

std::optional<Event> parse_known_event(std::string_view line, const std::string& where) {
  if (std::optional<Event> event = scan_list_event(line)) return event;
  const json::Value object = json::parse({.text = line, .file = where, .place = json::Place::column});
  return event_of(json::Fields(object, where));
}

}  // namespace octet::telemetry
