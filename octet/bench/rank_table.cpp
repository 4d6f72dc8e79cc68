#include "octet/bench/rank_table.hpp"

#include <cmath>

#include "octet/base/text.hpp"

namespace octet::bench {
namespace {

json::Value known(double x) { return std::isfinite(x) ? json::Value(x) : json::Value(); }

json::Value json_of(const RankTimes& r) {
  return json::Object{{"seconds", r.seconds},
                      {"compute_seconds", known(r.compute())},
                      {"exposed_communication_seconds", known(r.communication)},
                      {"update_seconds", known(r.update)},
                      {"peak_bytes", r.peak_bytes},
                      {"sent_bytes", r.sent_bytes}};
}

std::string place_text(const RankFacts& f) {
  std::string out = format("{}; {}\n{}", f.machine, f.libraries, counted(f.ranks, "rank"));
  if (f.ranks > 1) out += ", " + machine::backend_text(f.backend);
  if (f.device != Device::cpu) return out + "\n";
  out += format(", threads per rank: {}, processors of this machine: {}", f.threads, f.processors);
  if (f.ranks * f.threads > f.processors) out += "; ranks share processors";
  return out + "\n";
}

}  // namespace

std::string head_text(const StepFacts& f) {
  return place_text(f.place) + format("{}, ZeRO-{}, {} tokens per micro-batch in sequences of {}, {} timed steps per row\n\n", f.model,
                                      f.zero, grouped(f.tokens), f.sequence, f.repeats);
}

json::Value to_json(const StepFacts& f) {
  return json::Object{{"machine", f.place.machine},
                      {"libraries", f.place.libraries},
                      {"backend", f.place.backend},
                      {"ranks", f.place.ranks},
                      {"processors", f.place.processors},
                      {"threads_per_rank", f.place.threads},
                      {"model", f.model},
                      {"zero", f.zero},
                      {"tokens", f.tokens},
                      {"sequence", f.sequence},
                      {"repeats", f.repeats}};
}

std::string milliseconds(double seconds) { return fixed(1e3 * seconds, 1, "-"); }
std::string quartiles(const Timing& t) { return milliseconds(t.low) + "-" + milliseconds(t.high); }

json::Object members_of(const StepsOnRanks& s) {
  json::Array each;
  for (const RankTimes& r : s.each) each.push_back(json_of(r));
  return {{"ranks", s.ranks},
          {"tokens", s.tokens},
          {"seconds", s.seconds.median},
          {"seconds_low", s.seconds.low},
          {"seconds_high", s.seconds.high},
          {"tokens_per_second", s.rate()},
          {"fullest_load", s.fullest_load},
          {"mean", json_of(s.mean())},
          {"each", each}};
}

}  // namespace octet::bench
