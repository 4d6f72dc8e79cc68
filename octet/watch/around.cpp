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

void take(Around& into, std::string_view line, std::int64_t step, std::int64_t reach) {
  std::optional<Event> event;
  try {
    event = parse_known_event(line, "");
  } catch (const DataError&) {
    return;
  }
  const auto near = [&](std::int64_t s) { return std::llabs(s - step) <= reach; };
  if (!event) return;
  if (auto* s = std::get_if<StepEvent>(&*event); s && near(s->step)) into.steps.push_back(*s);
  if (auto* s = std::get_if<ScalesEvent>(&*event); s && near(s->step)) into.scales.push_back(std::move(*s));
  if (auto incident = as_incident(*event); incident && near(incident->step)) into.incidents.push_back(std::move(*incident));
}

}  // namespace

Around read_around(const std::string& path, std::int64_t offset, std::int64_t step, std::int64_t reach, std::int64_t window) {
  const RegularFile file = RegularFile::open(path);
  const std::int64_t begin = std::max<std::int64_t>(offset - window, 0), end = std::min(offset + window, std::int64_t(file.size));
  std::string bytes;
  file.read(path, begin, std::size_t(std::max<std::int64_t>(end - begin, 0)), bytes);
  Around out;
  std::size_t at = begin == 0 ? 0 : bytes.find('\n') + 1;
  if (begin > 0 && at == 0) return out;
  for (std::size_t stop; (stop = bytes.find('\n', at)) != std::string::npos; at = stop + 1)
    take(out, std::string_view(bytes).substr(at, stop - at), step, reach);
  return out;
}

}  // namespace octet::watch
