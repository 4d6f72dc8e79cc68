#include "tests/faults/inputs.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "octet/base/check.hpp"
#include "octet/base/clock.hpp"
#include "octet/numerics/philox.hpp"

namespace octet::faults {
namespace {

constexpr std::int64_t bad_steps = 5, fast_steps = 10;
constexpr double rate_factor = 30, sleep_factor = 2;
constexpr int repeated = 'e';

void spoil(data::Batch& b, BadBatch kind) {
  if (kind == BadBatch::repeated_token) {
    std::ranges::fill(b.inputs, repeated), std::ranges::fill(b.targets, repeated);
    return;
  }
  for (std::size_t i = 0; i < b.targets.size(); ++i) b.targets[i] = std::int32_t(philox(b.first_sample, i).w[0] % 256);
}

class BadBatches final : public Disturbance {
 public:
  BadBatches(const Target& target, BadBatch kind) : target_(target), kind_(kind) {}
  void before(const train::StepInputs& in) override {
    const bool fresh = in.step >= target_.step && steps_ < bad_steps;
    if (fresh) ++steps_;
    for (data::Batch& b : in.micro_batches) {
      if (fresh) samples_.insert(b.first_sample);
      if (samples_.contains(b.first_sample)) spoil(b, kind_);
    }
  }
  bool done() const override { return steps_ > 0; }

 private:
  const Target target_;
  const BadBatch kind_;
  std::int64_t steps_ = 0;
  std::set<std::uint64_t> samples_;
};

class HighRate final : public Disturbance {
 public:
  explicit HighRate(const Target& target) : target_(target) {}
  void before(const train::StepInputs& in) override {
    if (in.step < target_.step || steps_ == fast_steps) return;
    ++steps_;
    in.options.learning_rate *= rate_factor;
  }
  bool done() const override { return steps_ > 0; }

 private:
  const Target target_;
  std::int64_t steps_ = 0;
};

class SlowRank final : public Disturbance {
 public:
  explicit SlowRank(const Target& target) : target_(target) {}
  void before(const train::StepInputs& in) override {
    const double now = monotonic_seconds();
    if (last_ > 0 && in.step <= target_.step) step_seconds_ = step_seconds_ > 0 ? std::min(step_seconds_, now - last_) : now - last_;
    last_ = now;
    if (in.step < target_.step) return;
    done_ = true;
    std::this_thread::sleep_for(std::chrono::duration<double>(sleep_factor * step_seconds_));
  }
  bool done() const override { return done_; }

 private:
  const Target target_;
  double last_ = 0, step_seconds_ = 0;
  bool done_ = false;
};

/// The tensors "scale" and "descale" in the state of an engine's precision.
class ScaleTensors final : public StateVisitor {
 public:
  Tensor scale, descale;
  bool restoring() const override { return false; }
  void state(std::string_view name, const Tensor& t) override {
    if (name == "scale") scale = t;
    if (name == "descale") descale = t;
  }
  void state(std::string_view, const StoredSlice&, Tiny) override {}
  void state(std::string_view, std::int64_t&) override {}
  void state(std::string_view, double&) override {}
  void state(std::string_view, std::vector<double>&) override {}

 private:
  void enter(std::string_view) override {}
  void leave() override {}
};

class FrozenScale final : public Disturbance {
 public:
  explicit FrozenScale(const Target& target) : target_(target) {}
  void before(const train::StepInputs& in) override {
    if (in.step < target_.step) return;
    ScaleTensors now;
    in.engine.precision.visit_state(now);
    const auto& slots = in.engine.precision.slots().slots();
    if (!now.scale || now.scale.shape[0] != std::int64_t(slots.size())) return;  // a safer recipe was chosen meanwhile
    const std::string path = format("layers.{}.mlp.down", target_.layer);
    std::size_t of_layer = 0;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (slots[i].path != path || slots[i].operand == scaling::Operand::weight) continue;
      keep(in.engine.stream, now.scale.rows(std::int64_t(i), 1), now.descale.rows(std::int64_t(i), 1), of_layer++);
    }
  }
  bool done() const override { return !frozen_.empty(); }

 private:
  using Scales = std::vector<float>;
  void keep(Stream& stream, const Tensor& scale, const Tensor& descale, std::size_t tensor) {
    if (tensor == frozen_.size()) {
      frozen_.push_back({Scales(std::size_t(scale.count())), Scales(std::size_t(descale.count()))});
      download(stream, scale, frozen_[tensor].first.data()), download(stream, descale, frozen_[tensor].second.data());
    }
    upload(stream, frozen_[tensor].first.data(), scale), upload(stream, frozen_[tensor].second.data(), descale);
  }
  const Target target_;
  std::vector<std::pair<Scales, Scales>> frozen_;
};

}  // namespace

std::unique_ptr<Disturbance> make_bad_batches(const Target& target, BadBatch kind) { return std::make_unique<BadBatches>(target, kind); }
std::unique_ptr<Disturbance> make_high_rate(const Target& target) { return std::make_unique<HighRate>(target); }
std::unique_ptr<Disturbance> make_slow_rank(const Target& target) { return std::make_unique<SlowRank>(target); }
std::unique_ptr<Disturbance> make_frozen_scale(const Target& target) { return std::make_unique<FrozenScale>(target); }

}  // namespace octet::faults
