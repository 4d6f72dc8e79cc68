#include "octet/machine/gpu_meter.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "octet/base/error.hpp"
#include "octet/machine/nvml.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::machine {
namespace {

using namespace std::chrono_literals;

// A management library with one GPU at 0000:1b:00.0, whose functions follow NVML's interface: they return 0, or an error.
int began = 0, ended = 0;
int begin() { return ++began, 0; }
int end() { return ++ended, 0; }
int gpu_at(const char* bus, void** gpu) {
  *gpu = &began;
  return std::strcmp(bus, "0000:1b:00.0") == 0 ? 0 : 6;
}
int utilization(void*, unsigned* percent) { return percent[0] = 87, percent[1] = 40, 0; }
int power(void*, unsigned* milliwatts) { return *milliwatts = 612345, 0; }
int temperature(void*, unsigned sensor, unsigned* degrees) { return *degrees = sensor == 0 ? 71 : 0, 0; }
int refused(void*, unsigned, unsigned*) { return 3; }
int clock_of(void*, unsigned kind, unsigned* megahertz) { return *megahertz = kind == 1 ? 1755 : 0, 0; }
int memory(void*, unsigned long long* bytes) { return bytes[0] = 80, bytes[1] = 30, bytes[2] = 50, 0; }
int reasons(void*, unsigned long long* bits) { return *bits = 0x44, 0; }

std::map<std::string, void*> functions() {
  return {{"nvmlInit_v2", reinterpret_cast<void*>(&begin)},
          {"nvmlShutdown", reinterpret_cast<void*>(&end)},
          {"nvmlDeviceGetHandleByPciBusId_v2", reinterpret_cast<void*>(&gpu_at)},
          {"nvmlDeviceGetUtilizationRates", reinterpret_cast<void*>(&utilization)},
          {"nvmlDeviceGetPowerUsage", reinterpret_cast<void*>(&power)},
          {"nvmlDeviceGetTemperature", reinterpret_cast<void*>(&temperature)},
          {"nvmlDeviceGetClockInfo", reinterpret_cast<void*>(&clock_of)},
          {"nvmlDeviceGetMemoryInfo", reinterpret_cast<void*>(&memory)},
          {"nvmlDeviceGetCurrentClocksThrottleReasons", reinterpret_cast<void*>(&reasons)}};
}

Nvml::Find finder(std::map<std::string, void*> all) {
  return [all = std::move(all)](const char* name) {
    const auto at = all.find(name);
    return at == all.end() ? nullptr : at->second;
  };
}

TEST(GpuMeter, NvmlIsReadInTheUnitsOfTheRecord) {
  began = ended = 0;
  {
    const GpuReading r = Nvml(finder(functions()), "0000:1b:00.0").read();
    EXPECT_DOUBLE_EQ(r.utilization, 0.87);
    EXPECT_DOUBLE_EQ(r.power, 612.345);
    EXPECT_EQ(r.temperature, 71);
    EXPECT_EQ(r.sm_clock, 1755);
    EXPECT_EQ(r.memory_used, 50);
    EXPECT_EQ(r.throttling, 0x44);
  }
  EXPECT_TRUE(began == 1 && ended == 1);
}

TEST(GpuMeter, WhatTheGpuDoesNotTellIsNotKnown) {
  auto some = functions();
  some.erase("nvmlDeviceGetUtilizationRates"), some.erase("nvmlDeviceGetCurrentClocksThrottleReasons");
  some["nvmlDeviceGetTemperature"] = reinterpret_cast<void*>(&refused);
  const GpuReading r = Nvml(finder(some), "0000:1b:00.0").read();
  EXPECT_TRUE(std::isnan(r.utilization) && std::isnan(r.temperature) && r.throttling == 0 && r.power > 612);
  EXPECT_TRUE(r.known() && !GpuReading().known());
}

TEST(GpuMeter, ALibraryThatDoesNotFitIsRefusedByName) {
  using testing::error_of, testing::has;
  began = ended = 0;
  EXPECT_TRUE(has(error_of<DeviceError>([] { Nvml(finder(functions()), "0000:2b:00.0"); }),
                  "libnvidia-ml.so.1 does not know the GPU at 0000:2b:00.0: error 6"));
  EXPECT_EQ(began, ended);
  EXPECT_TRUE(has(error_of<DeviceError>([] { Nvml(finder({}), ""); }), "libnvidia-ml.so.1 has no function nvmlInit_v2"));
}

TEST(GpuMeter, ReadingsAreSummedSinceTheLastLook) {
  std::mutex mutex;
  std::condition_variable sampled;
  int calls = 0;
  const auto meter = sampled_meter(
      [&] {
        const std::scoped_lock lock(mutex);
        sampled.notify_one();
        ++calls;
        return GpuReading{.utilization = calls % 2 ? 0.5 : 1, .temperature = calls == 1 ? 80.0 : 60.0, .throttling = 1 << (calls % 2)};
      },
      1ms);
  std::unique_lock lock(mutex);
  ASSERT_TRUE(sampled.wait_for(lock, 10s, [&] { return calls >= 4; }));  // three are complete
  lock.unlock();
  const GpuReading r = meter->take();
  EXPECT_GT(r.utilization, 0.5);
  EXPECT_LT(r.utilization, 1);
  EXPECT_EQ(r.temperature, 80);
  EXPECT_EQ(r.throttling, 3);
  EXPECT_TRUE(std::isnan(r.power));
}

TEST(GpuMeter, ACpuHasAFormThatKnowsNothing) { EXPECT_FALSE(gpu_meter(Device::cpu)->take().known()); }

}  // namespace
}  // namespace octet::machine
