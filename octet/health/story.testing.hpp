#pragma once

#include <functional>
#include <vector>

#include "octet/health/monitor.hpp"
#include "octet/telemetry/throttling.hpp"
#include "tests/testing/testing.hpp"

// Invented records of runs, healthy ones with noise, and the alerts that a monitor makes of them.

namespace octet::health::testing {

/// The events of one step, in the order of a record.
struct Step {
  telemetry::ScalesEvent scales{};
  telemetry::HealthEvent health{};
  std::vector<telemetry::IncidentEvent> incidents{};
  telemetry::RanksEvent ranks{};
  telemetry::SharedScalesEvent shared_scales{};
  telemetry::ExpertsEvent experts{};
  telemetry::MachineEvent machine{};
  telemetry::GpusEvent gpus{};
  telemetry::StepEvent step{};
};
using Disturb = std::function<void(Step&)>;

constexpr std::int64_t measured_every = 5;

inline Subject subject_of(std::int64_t steps) {
  return {.quantizers = {{"layers.0.mlp.down", "x", "e4m3", "tensor"},
                         {"layers.0.mlp.down", "w", "e4m3", "tensor"},
                         {"layers.0.mlp.down", "dy", "e5m2", "tensor"}},
          .shared_scales = {"layers.0.mlp.up.weight", "layers.0.mlp.down.weight"},
          .steps = steps,
          .checkpoint_seconds = 600};
}

/// A step of a healthy run: one second, a falling loss, four ranks.
inline Step healthy_step(std::int64_t number, const std::vector<float>& noise) {
  std::size_t i = std::size_t(number) * 7;
  const auto n = [&] { return double(noise[i++ % noise.size()]); };
  const double t = double(number), loss = 2 + 2 * std::exp(-t / 100) + 0.03 * n();
  Step s;
  for (int operand = 0; operand < 3; ++operand) {
    const float amax = float(std::exp2(0.2 * n()));
    s.scales.amax.push_back(amax), s.scales.scale_min.push_back(448 / amax), s.scales.scale_max.push_back(448 / amax);
    s.health.headroom_bits.push_back(0), s.health.saturated.push_back(0), s.health.flushed.push_back(0.001f);
    s.health.sqnr_db.push_back(operand == 2 ? 26 : 31), s.health.nonfinite.push_back(0);
  }
  s.ranks = {.seconds = {1, 1, 1, 1}, .waited = {0.1f, 0.1f, 0.1f, 0.1f}};
  s.shared_scales = {.mu = {1, 0.5}, .overflow = {0, 0}, .underflow = {0, 0}};
  s.experts = {.experts = 8, .layers = {1, 3}, .counts = std::vector<std::int64_t>(16, 100)};
  s.machine = {.memory_free = 9e9, .disk_free = 1e12, .checkpoint_bytes = 1e9, .checkpoint_age = double(number % 600), .epoch = t / 1000};
  s.gpus = {.utilization = {1, 1},
            .power = {650, 640},
            .temperature = {66, 71},
            .sm_clock = {1755, 1740},
            .memory_used = {5e10f, 5e10f},
            .throttling = {telemetry::power_cap, telemetry::power_cap}};
  s.step = {.loss = loss,
            .grad_norm = 1 + 0.1 * std::fabs(n()),
            .learning_rate = 1e-3,
            .tokens = number * 1000,
            .seconds = 1,
            .tokens_per_second = 1000 * (1 + 0.02 * n()),
            .param_norm = 100 + 0.02 * t,
            .memory_bytes = 1000000000,
            .loss_scale = 65536};
  return s;
}

inline std::vector<telemetry::Event> record_of(std::int64_t steps, const Disturb& disturb) {
  const std::vector<float> noise = octet::testing::gaussian(10007, 20);
  std::vector<telemetry::Event> out;
  for (std::int64_t number = 1; number <= steps; ++number) {
    Step s = healthy_step(number, noise);
    s.step.step = number;
    if (disturb) disturb(s);
    const auto add = [&](auto event) {
      event.step = number, event.time = double(number);
      out.emplace_back(std::move(event));
    };
    add(s.scales);
    if (number % measured_every == 0) add(s.health);
    for (const telemetry::IncidentEvent& e : s.incidents) add(e);
    if (number % measured_every == 0) add(s.ranks), add(s.shared_scales), add(s.experts), add(s.gpus), add(s.machine);
    add(s.step);
  }
  return out;
}

inline void append(std::vector<telemetry::AlertEvent>& to, const std::vector<telemetry::AlertEvent>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

inline std::vector<telemetry::AlertEvent> alerts_of(Monitor& monitor, std::span<const telemetry::Event> events) {
  std::vector<telemetry::AlertEvent> out;
  for (const telemetry::Event& e : events) append(out, monitor.take(e));
  return out;
}

}  // namespace octet::health::testing
