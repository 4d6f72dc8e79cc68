#include "octet/plan/table.hpp"

#include <algorithm>
#include <cmath>

#include "octet/base/text.hpp"

namespace octet::plan {
namespace {

std::string seconds_text(double s) { return s >= 1 ? fixed(s, 2) + " s" : fixed(s * 1e3, 1) + " ms"; }
std::string gb(double bytes) { return fixed(bytes / 1e9, 1) + " GB"; }

std::string memory_text(const StageMemory& m) {
  std::string out = gb(m.total());
  const char* between = ": ";
  for (const auto& [name, bytes] : {std::pair("weights", m.weights + m.operands),
                                    {"gradients", m.gradients},
                                    {"optimizer", m.optimizer},
                                    {"activations", m.activations},
                                    {"working", m.working},
                                    {"other", m.overhead}})
    if (bytes >= 5e7) out += format("{}{} {}", between, name, fixed(bytes / 1e9, 1)), between = ", ";
  return out;
}

// Parts of at least 1% of the step, the longest first.
std::string time_text(const StepTime& t) {
  auto parts = parts_of(t);
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string out;
  for (const auto& [name, seconds] : parts)
    if (seconds >= 0.01 * t.total()) out += format("{}{} {}%", out.empty() ? "" : ", ", name, fixed(100 * seconds / t.total(), 0));
  return out;
}

std::string row(const Question& q, const Candidate& c, std::size_t rank) {
  std::string out =
      format("{}  {}{}\n", rank, to_text(c.layout), not_trained(c.layout, q).empty() ? "" : "  [not runnable by this version]");
  out +=
      format("   {} tokens/s per GPU, {} per step, {} model TFLOP/s per GPU, level {}\n", grouped(std::llround(token_rate(c.time, q.job))),
             seconds_text(c.time.total()), fixed(model_flops_rate(c.time, q.model, q.job) / 1e12, 0), optim::to_text(c.layout.level));
  out += "   time    " + time_text(c.time) + "\n";
  if (c.layout.pipeline == 1) return out + "   memory  " + memory_text(c.memory.first) + "\n";
  return out + "   memory  first stage " + memory_text(c.memory.first) + "\n           last stage " + memory_text(c.memory.last) + "\n";
}

std::string precision(bool eight_bit) { return eight_bit ? "FP8" : "BF16"; }

std::string other_precision(const Question& q, const Answer& a) {
  if (!a.other_precision) return format("{}: no layout fits into the memory\n", precision(!q.eight_bit));
  const Candidate& c = *a.other_precision;
  const double here = token_rate(a.best.front().time, q.job), there = token_rate(c.time, q.job);
  return format("{} instead: {} tokens/s per GPU, {} of {}, with {} and {} of memory\n", precision(!q.eight_bit),
                grouped(std::llround(there)), fixed(there / here, 2), precision(q.eight_bit), to_text(c.layout),
                gb(c.memory.largest().total()));
}

std::string runnable(const Question& q, const Answer& a) {
  const std::string why = not_trained(a.best.front().layout, q);
  if (why.empty()) return "";
  if (!a.runnable) return format("this version does not train the first, because {}; no layout that it trains fits\n", why);
  const double share = token_rate(a.runnable->time, q.job) / token_rate(a.best.front().time, q.job);
  return format("this version does not train the first, because {}; the best that it trains: {}, {} tokens/s per GPU, {} of the first\n",
                why, to_text(a.runnable->layout), grouped(std::llround(token_rate(a.runnable->time, q.job))), fixed(share, 2));
}

std::string longest_part(const Candidate& c) {
  auto parts = parts_of(c.time);
  const auto longest = std::max_element(parts.begin(), parts.end(), [](const auto& x, const auto& y) { return x.second < y.second; });
  return format("{}: {}% of the step", longest->first, fixed(100 * longest->second / c.time.total(), 0));
}

std::string binding_limit(const Question& q, const Answer& a) {
  const Candidate& best = a.best.front();
  if (a.nearest_miss && a.nearest_miss->time.total() < 0.99 * best.time.total()) {
    const Candidate& c = *a.nearest_miss;
    return format("memory: {} would take {}% less time, but needs {} of {}", to_text(c.layout),
                  fixed(100 * (1 - c.time.total() / best.time.total()), 1), gb(c.memory.largest().total()),
                  gb(usable_memory * q.job.memory));
  }
  return longest_part(best) + "; memory has room";
}

std::string reason_lost(const Candidate& winner, const Candidate& loser) {
  const double slower = loser.time.total() / winner.time.total() - 1;
  if (slower < 0.02)
    return format("equal within 2%, the error of the prediction, and it has more axes, ranks per replica, recomputation or divided state");
  auto mine = parts_of(winner.time), its = parts_of(loser.time);
  std::vector<std::pair<double, std::string>> more;
  for (std::size_t i = 0; i < mine.size(); ++i) more.push_back({its[i].second - mine[i].second, mine[i].first});
  std::sort(more.rbegin(), more.rend());
  std::string out = format("{}% slower", fixed(100 * slower, 1));
  for (std::size_t i = 0; i < 2; ++i)
    if (more[i].first > 0.002 * winner.time.total())
      out += format("{} {} more for {}", i == 0 ? ":" : " and", seconds_text(more[i].first), more[i].second);
  if (-more.back().first > 0.002 * winner.time.total())
    out += format(", {} less for {}", seconds_text(-more.back().first), more.back().second);
  return out;
}

}  // namespace

std::string nothing_fits(const Question& q, const Answer& a) {
  if (!a.best.empty()) return "";
  const std::string gpus = counted(q.job.gpus, "GPU");
  if (a.valid == 0) return format("no layout is valid on {}: {}; or choose another --gpus", gpus, a.rule);
  const Candidate& c = *a.nearest_miss;
  return format(
      "no layout fits on {}: {} needs the least, {} of {} per GPU, which about {} GPUs have. Use more GPUs, a shorter "
      "data.sequence_length, or --levels O0,O2,O3",
      gpus, to_text(c.layout), gb(c.memory.largest().total()), gb(usable_memory * q.job.memory),
      grouped(std::llround(std::ceil(double(q.job.gpus) * c.memory.largest().total() / (usable_memory * q.job.memory)))));
}

std::string given_text(const Question& q, const Candidate& c) {
  const double needed = c.memory.largest().total(), room = usable_memory * q.job.memory;
  std::string out = row(q, c, 1) + format("limit    {}\n", longest_part(c));
  out += needed <= room ? format("memory   {} of {} for tensors: it fits\n", gb(needed), gb(room))
                        : format("memory   {} of {} for tensors: it does not fit\n", gb(needed), gb(room));
  if (const std::string why = not_trained(c.layout, q); !why.empty()) out += format("this version does not train it, because {}\n", why);
  return out;
}

std::string answer_text(const Question& q, const Answer& a) {
  if (a.valid == 0) return "";
  std::string out = format("layouts  {} valid, {} of the fastest do not fit into {} x {}\n", grouped(a.valid), grouped(a.too_large),
                           usable_memory, gb(q.job.memory));
  if (a.best.empty()) return out;
  for (std::size_t i = 0; i < a.best.size(); ++i) out += row(q, a.best[i], i + 1);
  out += format("limit    {}\n", binding_limit(q, a));
  if (a.best.size() > 1) out += format("second   {}\n", reason_lost(a.best[0], a.best[1]));
  return out + other_precision(q, a) + runnable(q, a);
}

}  // namespace octet::plan
