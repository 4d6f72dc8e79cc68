#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// A component's configuration is a plain struct whose members hold their defaults, with one list of its fields:
//
//   struct OptimizerConfig {
//     double learning_rate = 3e-4;
//     ScheduleConfig schedule;
//     void fields(config::FieldVisitor& v) {
//       v.field("learning_rate", learning_rate, "peak learning rate", {.above = 0}, OnResume::may_change);
//       v.field("offload", offload, "on a GPU: keep the moments in the host's memory", OnResume::may_change);
//       v.section("schedule", schedule, "how the learning rate moves");
//       v.idle("schedule.decay", schedule.kind != Kind::wsd, "only optim.schedule.kind = \"wsd\" reads it");
//     }
//   };
//
// A field's entry has all that is known of it: name, value, help, bounds, and whether a resumed run may change it. When a field has no
// effect depends on the values of others: idle() says so in the lowest component that sees them all.
//
// Everything else follows from that list: TOML keys and overrides (read.hpp), the resolved text, JSON and help (write.hpp), the keys that a
// resumed run may change and the options without effect (attributes.hpp).

namespace octet::config {

/// The finite numbers a field accepts: all that satisfy every bound given. NaN and infinities are never accepted.
struct Range {
  double at_least = -std::numeric_limits<double>::infinity();
  double above = -std::numeric_limits<double>::infinity();
  double at_most = std::numeric_limits<double>::infinity();
  double below = std::numeric_limits<double>::infinity();
};

/// Whether a resumed run may give a field another value than it began with. `fixed`: it would be another run.
enum class OnResume : std::uint8_t { fixed, may_change };

/// An enum member without its type: its value as a number, read and written.
struct EnumSlot {
  void* object;
  std::int64_t (*get)(const void*);
  void (*set)(void*, std::int64_t);
};

class Ref;

/// A std::vector of configurations without its type.
struct ListSlot {
  void* object;
  std::size_t (*size)(const void*);
  Ref (*at)(void*, std::size_t);
  std::shared_ptr<void> (*make)(std::size_t size);  // another one, of defaults
  void (*take)(void* object, void* from);           // from such another one
};

/// The visitor of a configuration's fields. Names are [a-z0-9_]+ and differ within one section; help is one phrase without a full stop.
class FieldVisitor {
 public:
  virtual void field(std::string_view name, bool& value, std::string_view help, OnResume resume = OnResume::fixed) = 0;
  virtual void field(std::string_view name, std::int64_t& value, std::string_view help, Range range = {},
                     OnResume resume = OnResume::fixed) = 0;
  virtual void field(std::string_view name, double& value, std::string_view help, Range range = {}, OnResume resume = OnResume::fixed) = 0;
  virtual void field(std::string_view name, std::string& value, std::string_view help, OnResume resume = OnResume::fixed) = 0;
  virtual void field(std::string_view name, std::vector<std::string>& value, std::string_view help, OnResume resume = OnResume::fixed) = 0;

  /// A text that must be one of `names`.
  virtual void choice(std::string_view name, std::string& value, std::string_view help, std::vector<std::string> names,
                      OnResume resume = OnResume::fixed) = 0;

  /// A list whose elements must be of `names`.
  virtual void choices(std::string_view name, std::vector<std::string>& value, std::string_view help, std::vector<std::string> names,
                       OnResume resume = OnResume::fixed) = 0;

  /// An enum, each accepted value with its name: v.choice("kind", kind, "shape of the decay", {{"cosine", Kind::cosine}, ...}).
  template <class E>
  requires std::is_enum_v<E>
  void choice(std::string_view name, E& value, std::string_view help,
              std::initializer_list<std::pair<const char*, std::type_identity_t<E>>> named, OnResume resume = OnResume::fixed) {
    std::vector<std::string> names;
    std::vector<std::int64_t> values;
    for (const auto& [word, v] : named) names.push_back(word), values.push_back(std::int64_t(v));
    enumeration(name,
                {&value, [](const void* e) { return std::int64_t(*static_cast<const E*>(e)); },
                 [](void* e, std::int64_t v) { *static_cast<E*>(e) = E(v); }},
                help, std::move(names), std::move(values), resume);
  }

  /// The same for a choice that may be left open, which is called `open`.
  template <class E>
  requires std::is_enum_v<E>
  void choice(std::string_view name, std::optional<E>& value, std::string_view help, const char* open,
              std::initializer_list<std::pair<const char*, std::type_identity_t<E>>> named, OnResume resume = OnResume::fixed) {
    constexpr std::int64_t none = -1;
    std::vector<std::string> names{open};
    std::vector<std::int64_t> values{none};
    for (const auto& [word, v] : named) names.push_back(word), values.push_back(std::int64_t(v));
    using Value = std::optional<E>;
    enumeration(name,
                {&value,
                 [](const void* e) {
                   const Value& v = *static_cast<const Value*>(e);
                   return v ? std::int64_t(*v) : none;
                 },
                 [](void* e, std::int64_t v) { *static_cast<Value*>(e) = v == none ? Value() : Value(E(v)); }},
                help, std::move(names), std::move(values), resume);
  }

  /// The fields of `part`, under "name.". With OnResume::may_change a resumed run may change all of them.
  template <class Config>
  void section(std::string_view name, Config& part, std::string_view help, OnResume resume = OnResume::fixed) {
    enter(name, help, resume);
    part.fields(*this);
    leave();
  }

  /// Any number of configurations, each with the fields of `Config`: [[name]] in TOML, or name = [{...}, {...}]. Messages name the first
  /// one's fields "name[1].field". It is one field: read, compared and written as a whole.
  template <class Config>
  void list(std::string_view name, std::vector<Config>& value, std::string_view help, OnResume resume = OnResume::fixed);

  /// `name` is a key of earlier versions, whose value each of the keys `by` now has; all are relative to the section that is visited. Texts
  /// of earlier versions may set it (read.hpp); elsewhere it is refused with a hint at `by`.
  virtual void replaced(std::string_view name, std::vector<std::string> by) = 0;

  /// While `has_no_effect`, nothing reads the field `name`, because of `why` ("only optim.schedule.kind = \"wsd\" reads it"). `name` is
  /// relative to the section that is visited ("train.eval_every" at the top). Of several reasons the first counts.
  virtual void idle(std::string_view name, bool has_no_effect, std::string why) = 0;

 protected:
  ~FieldVisitor() = default;
  virtual void enumeration(std::string_view name, EnumSlot value, std::string_view help, std::vector<std::string> names,
                           std::vector<std::int64_t> values, OnResume resume) = 0;
  virtual void configurations(std::string_view name, ListSlot value, std::string_view help, OnResume resume) = 0;
  virtual void enter(std::string_view name, std::string_view help, OnResume resume) = 0;
  virtual void leave() = 0;
};

template <class Config>
concept HasFields = requires(Config& c, FieldVisitor& v) {
  c.fields(v);
};

/// Any configuration struct, to be written to. Does not own it.
class Ref {
 public:
  template <HasFields Config>
  requires(!std::is_const_v<Config> && !std::same_as<Config, Ref>) Ref(Config& config)
      : object_(&config), list_([](void* c, FieldVisitor& v) { static_cast<Config*>(c)->fields(v); }) {}
  void fields(FieldVisitor& v) const { list_(object_, v); }

 private:
  void* object_;
  void (*list_)(void*, FieldVisitor&);
};

template <class Config>
void FieldVisitor::list(std::string_view name, std::vector<Config>& value, std::string_view help, OnResume resume) {
  using List = std::vector<Config>;
  configurations(name,
                 {.object = &value,
                  .size = [](const void* list) { return static_cast<const List*>(list)->size(); },
                  .at = [](void* list, std::size_t i) { return Ref((*static_cast<List*>(list))[i]); },
                  .make = [](std::size_t size) -> std::shared_ptr<void> { return std::make_shared<List>(size); },
                  .take = [](void* list, void* from) { *static_cast<List*>(list) = std::move(*static_cast<List*>(from)); }},
                 help, resume);
}

/// Any configuration struct, only read. Does not own it.
class ConstRef {
 public:
  /// The list is one for reading and writing, so it is not const. Functions with a ConstRef never write through it.
  template <HasFields Config>
  requires(!std::same_as<Config, Ref>) ConstRef(const Config& config) : ref_(const_cast<Config&>(config)) {}
  ConstRef(Ref ref) : ref_(ref) {}
  void fields(FieldVisitor& v) const { ref_.fields(v); }

 private:
  Ref ref_;
};

}  // namespace octet::config
