#pragma once

#include <limits>
#include <optional>
#include <utility>

#include "octet/telemetry/event.hpp"

namespace octet::telemetry {

/// All that is known of one field of an event. docs/run-folder.md has these words, and a test compares them.
struct Field {
  const char* name;     // in the line
  const char* unit;     // "": none, or one that the meaning says
  const char* meaning;  // one phrase without a full stop, as Markdown
  /// Lines may lack the field, which then keeps its default: those of earlier versions, and those where `left_out` holds.
  bool may_lack = false;
  bool left_out = false;  // from the line that is written
  /// Of a list: what each entry belongs to ("rank"), and how many entries there must be; none: at least one.
  const char* entry = nullptr;
  std::optional<std::size_t> entries{};
  /// Of integers.
  std::int64_t low = 0, high = std::numeric_limits<std::int64_t>::max();
};

/// The visitor of an event's fields.
class EventVisitor {
 public:
  virtual void field(const Field&, double&) = 0;
  virtual void field(const Field&, std::int64_t&) = 0;
  virtual void field(const Field&, bool&) = 0;
  virtual void field(const Field&, std::string&) = 0;
  virtual void field(const Field&, Severity&) = 0;
  virtual void field(const Field&, std::vector<float>&) = 0;
  virtual void field(const Field&, std::vector<std::int64_t>&) = 0;
  virtual void field(const Field&, std::vector<std::string>&) = 0;

 protected:
  ~EventVisitor() = default;
};

/// All fields of an event, in the order of its line: step, time, and its own.
template <class E>
void visit_fields(EventVisitor& v, E& e) {
  v.field({"step", "", "of the optimizer, from 1"}, e.step);
  v.field({"time", "s", "since the run began"}, e.time);
  e.fields(v);
}

/// Calls f(E()) for every kind of event, in the order of Event.
template <class F>
void each_event(F f) {
  [&]<std::size_t... i>(std::index_sequence<i...>) { (f(std::variant_alternative_t<i, Event>()), ...); }
  (std::make_index_sequence<std::variant_size_v<Event>>());
}

}  // namespace octet::telemetry
