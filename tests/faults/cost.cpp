#include "tests/faults/cost.hpp"

#include <time.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <thread>

#include "octet/base/clock.hpp"
#include "octet/health/monitor.hpp"
#include "octet/telemetry/event_line.hpp"
#include "octet/telemetry/run_record.hpp"
#include "octet/train/run/trainer.hpp"

namespace octet::faults {
namespace {

constexpr std::size_t arms = 3;
constexpr std::int64_t warm_up = 10;  // steps that do not count

double processor_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

/// The order in which arms run their steps: each round has every arm once.
class Turns {
 public:
  explicit Turns(std::int64_t rounds) {
    std::mt19937 random(1);
    std::array<std::size_t, arms> round{0, 1, 2};
    for (std::int64_t i = 0; i < rounds; ++i) {
      std::ranges::shuffle(round, random);
      order_.insert(order_.end(), round.begin(), round.end());
    }
  }
  void wait_for(std::size_t arm) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return at_ == order_.size() || order_[at_] == arm; });
  }
  void pass() {
    {
      const std::lock_guard lock(mutex_);
      if (at_ < order_.size()) ++at_;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::size_t> order_;
  std::size_t at_ = 0;
};

struct Seconds {
  double processor = 0, wall = 0;
};

/// From the begin of a step to that of the next one, without the time in which other arms run.
class Clock final : public train::StepHook {
 public:
  Clock(Turns& turns, std::size_t arm) : turns_(turns), arm_(arm) {}
  void before(const train::StepInputs&) override {
    if (begun_) {
      steps.push_back({processor_seconds() - begin_.processor, monotonic_seconds() - begin_.wall});
      turns_.pass();
    }
    turns_.wait_for(arm_);
    begun_ = true, begin_ = {processor_seconds(), monotonic_seconds()};
  }
  std::vector<Seconds> steps;

 private:
  Turns& turns_;
  const std::size_t arm_;
  bool begun_ = false;
  Seconds begin_;
};

telemetry::PairedGap ratio(const std::vector<Seconds>& a, const std::vector<Seconds>& b, double Seconds::*clock, std::int64_t block) {
  std::vector<double> ratios;
  for (std::size_t begin = std::size_t(warm_up); begin + std::size_t(block) <= std::min(a.size(), b.size()); begin += std::size_t(block)) {
    double sums[2] = {};
    for (std::size_t i = begin; i < begin + std::size_t(block); ++i) sums[0] += a[i].*clock, sums[1] += b[i].*clock;
    ratios.push_back(sums[0] / sums[1] - 1);
  }
  return telemetry::paired_gap(ratios);
}

Ratio ratio(const std::vector<Seconds>& a, const std::vector<Seconds>& b, std::int64_t block) {
  return {ratio(a, b, &Seconds::processor, block), ratio(a, b, &Seconds::wall, block)};
}

// Time of the rules per step, over the events of a run.
double rules_seconds(const std::string& folder, const health::AlertsConfig& alerts, const telemetry::RunFacts& facts) {
  std::vector<telemetry::Event> events;
  std::int64_t steps = 0;
  std::ifstream lines(folder + "/metrics.jsonl");
  for (std::string line; std::getline(lines, line);) {
    events.push_back(telemetry::parse_event(line, "metrics.jsonl"));
    steps += std::holds_alternative<telemetry::StepEvent>(events.back());
  }
  health::Monitor monitor(alerts, {.quantizers = facts.quantizers, .steps = facts.steps});
  const double begin = processor_seconds();
  for (const telemetry::Event& e : events) monitor.take(e);
  return (processor_seconds() - begin) / double(std::max<std::int64_t>(steps, 1));
}

}  // namespace

Cost alert_cost(const train::RunConfig& config, std::int64_t blocks) {
  Cost out{.blocks = blocks, .block_steps = config.train.health_every};
  std::array<train::RunConfig, arms> configs{config, config, config};
  configs[0].alerts.enabled = false, configs[2].train.health_every = 1;
  const std::int64_t steps = warm_up + blocks * out.block_steps + 1;
  Turns turns(steps);
  std::array<std::unique_ptr<Clock>, arms> clocks;
  std::array<std::string, arms> folders;
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < arms; ++i) {
      clocks[i] = std::make_unique<Clock>(turns, i);
      configs[i].train.steps = steps, configs[i].name = format("cost-{}", i);
      threads.emplace_back([&, i] {
        const train::Corpus corpus(configs[i].data, configs[i].train, configs[i].model.shape().vocabulary);
        folders[i] =
            train::Trainer(configs[i], corpus,
                           {.console = train::Console::Kind::quiet, .save_weights = false, .save_finished = false, .hook = clocks[i].get()})
                .run()
                .folder;
        turns.pass();
      });
    }
  }
  out.alerts = ratio(clocks[1]->steps, clocks[0]->steps, out.block_steps);
  out.every_step = ratio(clocks[2]->steps, clocks[1]->steps, out.block_steps);
  const telemetry::RunRecord record = telemetry::read_run(folders[1]);
  out.rules_microseconds = 1e6 * rules_seconds(folders[1], configs[1].alerts, record.facts);
  std::vector<double> all;
  for (const Seconds& s : clocks[1]->steps) all.push_back(s.processor);
  std::ranges::nth_element(all, all.begin() + std::ptrdiff_t(all.size() / 2));
  out.step_microseconds = 1e6 * all[all.size() / 2];
  for (const std::string& folder : folders) std::filesystem::remove_all(folder);
  return out;
}

}  // namespace octet::faults
