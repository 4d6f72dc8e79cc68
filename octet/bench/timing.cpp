#include "octet/bench/timing.hpp"

#include <algorithm>
#include <cmath>

#include "octet/tensor/timer.hpp"

namespace octet::bench {
namespace {

constexpr std::size_t most_sets = 1024;
constexpr double most_launches = 4096;

std::vector<std::vector<Launch>> prepared(Stream& stream, const Effort& effort, const PrepareWays& prepare) {
  std::vector<std::vector<Launch>> sets;
  const std::size_t before = stream.arena().in_use();
  do sets.push_back(prepare(stream));
  while (sets.size() < most_sets && double(stream.arena().in_use() - before) < effort.working_set_bytes);
  return sets;
}

double at(const std::vector<double>& sorted, double share) {
  const double place = share * double(sorted.size() - 1);
  const std::size_t below = std::size_t(place), above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - double(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Timing timing_of(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {at(samples, 0.5), at(samples, 0.25), at(samples, 0.75), samples.front()};
}

std::vector<Timing> measure_ways(Stream& stream, const Effort& effort, const PrepareWays& prepare) {
  const Scope scratch(stream), step(stream, Lifetime::step);
  const std::vector<std::vector<Launch>> sets = prepared(stream, effort, prepare);
  std::size_t next = 0;  // across ways, so that no set is in a cache
  const auto launch = [&](std::size_t way, int times) {
    for (int i = 0; i < times; ++i) sets[next++ % sets.size()][way]();
  };
  const auto proceed = [&] {
    if (effort.stopped != nullptr && effort.stopped()) throw Stopped();
  };
  Timer timer(stream);
  std::vector<Timing> out;
  for (std::size_t way = 0; way < sets.front().size(); ++way) {
    proceed();
    launch(way, way == 0 ? int(sets.size()) : 1);
    wait(stream);
    timer.start();
    launch(way, 1);
    const double once = std::max(timer.stop(), 1e-7);
    const int launches = int(std::clamp(std::ceil(effort.sample_seconds / once), 1.0, most_launches));
    std::vector<double> samples;
    for (int r = 0; r < effort.repeats; ++r) {
      proceed();
      timer.start();
      launch(way, launches);
      samples.push_back(timer.stop() / launches);
    }
    out.push_back(timing_of(std::move(samples)));
  }
  return out;
}

Timing measure(Stream& stream, const Effort& effort, const Prepare& prepare) {
  return measure_ways(stream, effort, [&](Stream& s) { return std::vector<Launch>{prepare(s)}; }).front();
}

}  // namespace octet::bench
