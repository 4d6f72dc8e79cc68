#include "octet/machine/gpu_meter.hpp"

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include "octet/base/error.hpp"
#include "octet/base/log.hpp"
#include "octet/machine/nvml.hpp"
#include "octet/tensor/cuda/bus.hpp"

namespace octet::machine {
namespace {

constexpr std::chrono::milliseconds sample_period(500);

class NoMeter final : public GpuMeter {
 public:
  GpuReading take() override { return {}; }
};

/// The mean of the numbers that are known.
class Mean {
 public:
  void add(double x) {
    if (std::isfinite(x)) sum_ += x, ++count_;
  }
  double value() const { return count_ > 0 ? sum_ / double(count_) : NAN; }

 private:
  double sum_ = 0;
  std::int64_t count_ = 0;
};

class Samples {
 public:
  void add(const GpuReading& r) {
    utilization_.add(r.utilization), power_.add(r.power), clock_.add(r.sm_clock);
    temperature_ = std::fmax(temperature_, r.temperature), memory_ = std::fmax(memory_, r.memory_used);
    reasons_ |= r.throttling, ++count_;
  }
  bool empty() const { return count_ == 0; }
  GpuReading all() const {
    return {.utilization = utilization_.value(),
            .power = power_.value(),
            .temperature = temperature_,
            .sm_clock = clock_.value(),
            .memory_used = memory_,
            .throttling = reasons_};
  }

 private:
  Mean utilization_, power_, clock_;
  double temperature_ = NAN, memory_ = NAN;
  std::int64_t reasons_ = 0, count_ = 0;
};

class SampledMeter final : public GpuMeter {
 public:
  SampledMeter(std::function<GpuReading()> read, std::chrono::milliseconds period)
      : read_(std::move(read)), thread_([this, period](const std::stop_token& stop) { run(stop, period); }) {}

  GpuReading take() override {
    const std::scoped_lock lock(mutex_);
    if (!samples_.empty()) last_ = samples_.all();
    samples_ = {};
    return last_;
  }

 private:
  void run(const std::stop_token& stop, std::chrono::milliseconds period) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      lock.unlock();
      const GpuReading now = read_();
      lock.lock();
      samples_.add(now);
      due_.wait_for(lock, stop, period, [] { return false; });
    }
  }

  std::function<GpuReading()> read_;
  std::mutex mutex_;
  std::condition_variable_any due_;
  Samples samples_;
  GpuReading last_;
  std::jthread thread_;  // last: it ends before the members that it uses
};

}  // namespace

std::unique_ptr<GpuMeter> sampled_meter(std::function<GpuReading()> read, std::chrono::milliseconds period) {
  return std::make_unique<SampledMeter>(std::move(read), period);
}

std::unique_ptr<GpuMeter> gpu_meter(Device device) {
  if (device != Device::cuda) return std::make_unique<NoMeter>();
  try {
    const std::shared_ptr<Nvml> nvml = Nvml::open(cuda::bus_address());
    return sampled_meter([nvml] { return nvml->read(); }, sample_period);
  } catch (const DeviceError& e) {
    log::info("the record will not have the GPU's utilization, power, temperature and clock: {}", e.what());
    return std::make_unique<NoMeter>();
  }
}

}  // namespace octet::machine
