#include "octet/machine/nvml.hpp"

#include <dlfcn.h>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"

namespace octet::machine {
namespace {

constexpr const char* library = "libnvidia-ml.so.1";
constexpr int success = 0;
constexpr unsigned of_gpu = 0;  // NVML_TEMPERATURE_GPU
constexpr unsigned of_sm = 1;   // NVML_CLOCK_SM

using Gpu = void*;  // nvmlDevice_t
struct Utilization {
  unsigned gpu, memory;  // percent
};
struct Memory {
  unsigned long long total, free, used;  // bytes
};

template <class Function>
Function* found(const Nvml::Find& find, const char* name) {
  return reinterpret_cast<Function*>(find(name));
}

template <class Function>
Function* required(const Nvml::Find& find, const char* name) {
  Function* const function = found<Function>(find, name);
  if (function == nullptr) throw DeviceError(format("{} has no function {}", library, name));
  return function;
}

}  // namespace

struct Nvml::Functions {
  int (*end)();
  int (*utilization)(Gpu, Utilization*);
  int (*power)(Gpu, unsigned*);  // milliwatts
  int (*temperature)(Gpu, unsigned, unsigned*);
  int (*clock)(Gpu, unsigned, unsigned*);
  int (*memory)(Gpu, Memory*);
  int (*reasons)(Gpu, unsigned long long*);
};

std::unique_ptr<Nvml> Nvml::open(const std::string& bus) {
  // It stays open: threads of the driver may run in it until the process ends.
  void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw DeviceError(format("{} cannot be opened: {}", library, ::dlerror()));
  return std::make_unique<Nvml>([handle](const char* name) { return ::dlsym(handle, name); }, bus);
}

Nvml::Nvml(Find find, const std::string& bus) {
  const auto begin = required<int()>(find, "nvmlInit_v2");
  const auto gpu_at = required<int(const char*, Gpu*)>(find, "nvmlDeviceGetHandleByPciBusId_v2");
  const auto newer = found<int(Gpu, unsigned long long*)>(find, "nvmlDeviceGetCurrentClocksEventReasons");
  functions_ = std::make_unique<Functions>(Functions{
      .end = required<int()>(find, "nvmlShutdown"),
      .utilization = found<int(Gpu, Utilization*)>(find, "nvmlDeviceGetUtilizationRates"),
      .power = found<int(Gpu, unsigned*)>(find, "nvmlDeviceGetPowerUsage"),
      .temperature = found<int(Gpu, unsigned, unsigned*)>(find, "nvmlDeviceGetTemperature"),
      .clock = found<int(Gpu, unsigned, unsigned*)>(find, "nvmlDeviceGetClockInfo"),
      .memory = found<int(Gpu, Memory*)>(find, "nvmlDeviceGetMemoryInfo"),
      .reasons = newer != nullptr ? newer : found<int(Gpu, unsigned long long*)>(find, "nvmlDeviceGetCurrentClocksThrottleReasons")});
  if (const int code = begin(); code != success) throw DeviceError(format("{} does not start: error {}", library, code));
  if (const int code = gpu_at(bus.c_str(), &gpu_); code != success) {
    functions_->end();
    throw DeviceError(format("{} does not know the GPU at {}: error {}", library, printable(bus), code));
  }
}

Nvml::~Nvml() { functions_->end(); }

GpuReading Nvml::read() const {
  const Functions& f = *functions_;
  GpuReading out;
  if (Utilization x{}; f.utilization != nullptr && f.utilization(gpu_, &x) == success) out.utilization = double(x.gpu) / 100;
  if (unsigned x = 0; f.power != nullptr && f.power(gpu_, &x) == success) out.power = double(x) / 1000;
  if (unsigned x = 0; f.temperature != nullptr && f.temperature(gpu_, of_gpu, &x) == success) out.temperature = double(x);
  if (unsigned x = 0; f.clock != nullptr && f.clock(gpu_, of_sm, &x) == success) out.sm_clock = double(x);
  if (Memory x{}; f.memory != nullptr && f.memory(gpu_, &x) == success) out.memory_used = double(x.used);
  if (unsigned long long x = 0; f.reasons != nullptr && f.reasons(gpu_, &x) == success) out.throttling = std::int64_t(x);
  return out;
}

}  // namespace octet::machine
