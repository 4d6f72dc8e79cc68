#include "octet/telemetry/exchange_time.hpp"

#include <algorithm>

namespace octet::telemetry {
namespace {

bool copies(const TracedActivity& a) {
  return a.kind == TracedActivity::Kind::copy && (a.name == TracedActivity::between_devices || a.name == TracedActivity::to_other_device);
}
bool exchanges(const TracedActivity& a) {
  return copies(a) || (a.kind == TracedActivity::Kind::kernel && a.name.find("nccl") != a.name.npos);
}

// A moment at which activities begin or end.
struct Moment {
  std::int64_t time;
  int exchanges, others;  // how many more run from now on
  bool of_copy;
};

}  // namespace

ExchangeTime exchange_time(const StepTrace& trace, const TracedSpan& within) {
  std::vector<Moment> moments;
  for (const TracedActivity& a : trace.activities) {
    const std::int64_t begin = std::max(a.begin, within.begin), end = std::min(a.end, within.end);
    if (begin >= end) continue;
    const int exchange = exchanges(a) ? 1 : 0;
    moments.push_back({begin, exchange, 1 - exchange, copies(a)}), moments.push_back({end, -exchange, exchange - 1, copies(a)});
  }
  std::sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) { return a.time < b.time; });
  ExchangeTime out;
  int running = 0, others = 0;
  bool after_copy = false;
  std::int64_t before = within.begin;
  for (const Moment& m : moments) {
    const double seconds = double(m.time - before) * 1e-9;
    const bool waits = running == 0 && others == 0 && (after_copy || m.of_copy);
    if (running > 0 || waits) out.seconds += seconds;
    if ((running > 0 && others == 0) || waits) out.exposed += seconds;
    running += m.exchanges, others += m.others, before = m.time, after_copy = m.of_copy;
  }
  return out;
}

}  // namespace octet::telemetry
