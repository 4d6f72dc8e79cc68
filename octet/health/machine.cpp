#include <algorithm>
#include <cmath>

#include "octet/base/text.hpp"
#include "octet/health/families.hpp"
#include "octet/health/window.hpp"

namespace octet::health {

/// throughput, slow_rank, memory, disk, checkpoint_age, data_repeated: the machine and the files around a run. They depend on times, so
/// they differ between repetitions of a run, but not between readings of its record.
class MachineRules final : public Family {
 public:
  MachineRules(const AlertsConfig&, const Subject&);
  using Family::take;
  void take(const telemetry::StepEvent&, Alerts&) override;
  void take(const telemetry::RanksEvent&, Alerts&) override;
  void take(const telemetry::MachineEvent&, Alerts&) override;
  void visit_state(StateVisitor&) override;

 private:
  void memory(const telemetry::MachineEvent&, Alerts&);
  void disk(const telemetry::MachineEvent&, Alerts&);
  double forecast(std::int64_t step) const;
  void checkpoint(const telemetry::MachineEvent&, Alerts&);
  double checkpoint_interval() const;
  void data(const telemetry::MachineEvent&, Alerts&);

  const std::int64_t steps_, checkpoint_steps_;
  const double checkpoint_seconds_;
  Alarm throughput_, slow_rank_, memory_, disk_, checkpoint_, data_;
  Window recent_rates_, rates_, seconds_, free_, free_steps_;
  double slow_since_;  // time, below 0 while it is not slow
  double held_ = 0;    // bytes, of the last step
  std::int64_t slowest_ = -1, times_slowest_ = 0;
};

namespace {

constexpr std::size_t history = 256, fewest_rates = 64;
constexpr double slow_seconds = 60;
constexpr std::size_t fewest_measurements = 12;  // of free space, for a forecast
constexpr double farthest = 10;                  // forecast, in spans of the observation
constexpr double least_interval = 60;            // seconds between checkpoints, as far as their age counts

}  // namespace

MachineRules::MachineRules(const AlertsConfig& config, const Subject& subject)
    : steps_(subject.steps),
      checkpoint_steps_(subject.checkpoint_steps),
      checkpoint_seconds_(subject.checkpoint_seconds),
      throughput_("throughput", config),
      slow_rank_("slow_rank", config),
      memory_("memory", config),
      disk_("disk", config),
      checkpoint_("checkpoint_age", config),
      data_("data_repeated", config),
      recent_rates_(throughput_.window()),
      rates_(history),
      seconds_(throughput_.window()),
      free_(disk_.window()),
      free_steps_(disk_.window()),
      slow_since_(-1) {}

void MachineRules::take(const telemetry::StepEvent& e, Alerts& out) {
  held_ = double(e.memory_bytes);
  seconds_.add(e.seconds), recent_rates_.add(e.tokens_per_second), rates_.add(e.tokens_per_second);
  if (rates_.size() < fewest_rates) return;
  const double now = recent_rates_.median(), own = rates_.median(), share = now / own;
  if (!(share < throughput_.threshold())) slow_since_ = -1;
  else if (slow_since_ < 0) slow_since_ = e.time;
  if (throughput_.fires(slow_since_ >= 0 && e.time - slow_since_ >= slow_seconds))
    out.add(throughput_, "", share,
            format("{} tokens per second for more than a minute, {}% of the median of the last {} steps, {}", digits(now),
                   fixed(100 * share, 0), rates_.size(), digits(own)));
}

void MachineRules::take(const telemetry::RanksEvent& e, Alerts& out) {
  if (e.seconds.size() < 2 || e.waited.size() != e.seconds.size()) return;
  std::vector<double> busy;
  for (std::size_t i = 0; i < e.seconds.size(); ++i) busy.push_back(telemetry::busy_seconds(e, i));
  const std::size_t slowest = std::size_t(std::ranges::max_element(busy) - busy.begin());
  const double longest = busy[slowest];
  std::ranges::nth_element(busy, busy.begin() + std::ptrdiff_t((busy.size() - 1) / 2));
  const double middle = busy[(busy.size() - 1) / 2], factor = longest / middle;
  const bool slow = factor >= slow_rank_.threshold();
  times_slowest_ = !slow ? 0 : std::int64_t(slowest) == slowest_ ? times_slowest_ + 1 : 1;
  slowest_ = std::int64_t(slowest);
  if (slow_rank_.fires(times_slowest_ >= std::int64_t(slow_rank_.window())))
    out.add(slow_rank_, format("rank {}", slowest), factor,
            format("rank {} computed for {} s per step in {} measurements in a row, {} times the median of the ranks, {} s", slowest,
                   digits(longest), slow_rank_.window(), digits(factor), digits(middle)));
}

void MachineRules::take(const telemetry::MachineEvent& e, Alerts& out) { memory(e, out), disk(e, out), checkpoint(e, out), data(e, out); }

void MachineRules::memory(const telemetry::MachineEvent& e, Alerts& out) {
  const double share = held_ / (held_ + e.memory_free);
  if (memory_.fires(share >= memory_.threshold()))
    out.add(memory_, "", share, format("the run holds {}, and {} are free on its device", bytes_text(held_), bytes_text(e.memory_free)));
}

void MachineRules::disk(const telemetry::MachineEvent& e, Alerts& out) {
  if (!std::isfinite(e.disk_free)) return;
  free_.add(e.disk_free), free_steps_.add(double(e.step));
  const double later = std::max(0.0, std::min(e.disk_free, forecast(e.step)));
  const double checkpoint = std::isfinite(e.checkpoint_bytes) ? e.checkpoint_bytes : 0;
  const double needed = disk_.threshold() * checkpoint;
  if (!disk_.fires(later < needed || later == 0)) return;
  out.add(disk_, "", checkpoint > 0 ? later / checkpoint : 0,
          format("{} are free on the disk of the run's folder; at this pace {} will be left, and a checkpoint has {}",
                 bytes_text(e.disk_free), bytes_text(later), bytes_text(checkpoint)));
}

// Free bytes at the end of the run, or as far as such a short observation tells, if they fell in each quarter of the window.
double MachineRules::forecast(std::int64_t step) const {
  const std::size_t n = free_.size(), quarter = n / 4;
  if (n < fewest_measurements || steps_ <= step) return free_.values().back();
  double medians[4];
  for (std::size_t q = 0; q < 4; ++q) {
    const auto begin = free_.values().begin() + std::ptrdiff_t(q * quarter);
    medians[q] = median_of({begin, begin + std::ptrdiff_t(quarter)});
    if (q > 0 && !(medians[q] < medians[q - 1])) return free_.values().back();
  }
  const double span = free_steps_.values().back() - free_steps_.values().front(), per_step = (medians[0] - medians[3]) / (0.75 * span);
  return free_.values().back() - per_step * std::min(double(steps_ - step), farthest * span);
}

double MachineRules::checkpoint_interval() const {
  double interval = checkpoint_seconds_ > 0 ? checkpoint_seconds_ : INFINITY;
  if (checkpoint_steps_ > 0) interval = std::min(interval, double(checkpoint_steps_) * seconds_.median());
  return std::max(interval, least_interval);
}

void MachineRules::checkpoint(const telemetry::MachineEvent& e, Alerts& out) {
  const double interval = checkpoint_interval(), age = e.checkpoint_age / interval;
  if (checkpoint_.fires(age >= checkpoint_.threshold()))
    out.add(checkpoint_, "", age,
            format("no checkpoint was completed for {} s; one is due every {} s", digits(e.checkpoint_age), digits(interval)));
}

void MachineRules::data(const telemetry::MachineEvent& e, Alerts& out) {
  if (data_.fires(e.epoch > data_.threshold())) out.add(data_, "", e.epoch, format("the run has read its data {} times", digits(e.epoch)));
}

void MachineRules::visit_state(StateVisitor& v) {
  v.section("throughput", throughput_), v.section("slow_rank", slow_rank_), v.section("memory", memory_);
  v.section("disk", disk_), v.section("checkpoint", checkpoint_), v.section("data", data_);
  v.section("recent_rates", recent_rates_), v.section("rates", rates_), v.section("seconds", seconds_);
  v.section("free", free_), v.section("free_steps", free_steps_);
  v.state("slow_since", slow_since_), v.state("held", held_);
  v.count("slowest", slowest_, {.least = -1}), v.count("times_slowest", times_slowest_);
}

std::unique_ptr<Family> machine_rules(const AlertsConfig& config, const Subject& subject) {
  return std::make_unique<MachineRules>(config, subject);
}

}  // namespace octet::health
