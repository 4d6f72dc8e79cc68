#include "octet/watch/around.hpp"

#include <algorithm>
#include <cstdlib>

#include "octet/base/error.hpp"
#include "octet/base/regular_file.hpp"
#include "octet/base/text.hpp"
#include "octet/telemetry/event_line.hpp"
#include "octet/watch/incident.hpp"

namespace octet::watch {
namespace {

using namespace telemetry;

/// The steps of one pass of a run, around one of them.
class Pass {
 public:
  Pass(Around& into, std::int64_t step, std::int64_t reach) : into_(into), step_(step), reach_(reach) {}

  /// `before`: the line is before the one looked for. False if no later line belongs to its pass.
  bool take(std::string_view line, bool before) {
    const std::optional<Event> event = event_in(line);
    if (!event) return true;
    if (const auto* s = std::get_if<StepEvent>(&*event); s && near(s->step)) into_.steps.push_back(*s);
    if (const auto* s = std::get_if<ScalesEvent>(&*event); s && near(s->step)) into_.scales.push_back(*s);
    if (auto incident = as_incident(*event); incident && near(incident->step)) into_.incidents.push_back(std::move(*incident));
    const auto* recovery = std::get_if<RecoveryEvent>(&*event);
    if (recovery == nullptr || !repeats_steps(*recovery)) return true;
    if (!before) return false;
    drop_after(recovery->back_to);
    return true;
  }

 private:
  static std::optional<Event> event_in(std::string_view line) {
    try {
      return parse_known_event(line, "");
    } catch (const DataError&) {
      return std::nullopt;
    }
  }
  bool near(std::int64_t step) const { return std::llabs(step - step_) <= reach_; }
  void drop_after(std::int64_t step) {
    std::erase_if(into_.steps, [&](const StepEvent& e) { return e.step > step; });
    std::erase_if(into_.scales, [&](const ScalesEvent& e) { return e.step > step; });
  }

  Around& into_;
  std::int64_t step_, reach_;
};

}  // namespace

Around read_around(const std::string& path, std::int64_t offset, std::int64_t step, std::int64_t reach, std::int64_t window) {
  const RegularFile file = RegularFile::open(path, Link::refuse_all);
  const std::int64_t begin = std::max<std::int64_t>(offset - window, 0), end = std::min(offset + window, std::int64_t(file.size));
  std::string bytes;
  file.read(path, begin, std::size_t(std::max<std::int64_t>(end - begin, 0)), bytes);
  Around out;
  Pass pass(out, step, reach);
  std::size_t at = begin == 0 ? 0 : bytes.find('\n') + 1;
  if (begin > 0 && at == 0) return out;
  for (std::size_t stop; (stop = bytes.find('\n', at)) != std::string::npos; at = stop + 1)
    if (!pass.take(std::string_view(bytes).substr(at, stop - at), begin + std::int64_t(at) < offset)) break;
  return out;
}

}  // namespace octet::watch
