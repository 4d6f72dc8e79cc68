#include "octet/tensor/cuda/trace.hpp"

#include <cuda_runtime.h>

#if __has_include(<cupti.h>)
#include <cupti.h>
#define OCTET_HAS_CUPTI 1
#endif

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "octet/base/check.hpp"
#include "octet/tensor/cuda/device.hpp"

namespace octet::cuda {

#ifdef OCTET_HAS_CUPTI
namespace {

#if CUPTI_API_VERSION >= 130000
using KernelRecord = CUpti_ActivityKernel10;
using CopyRecord = CUpti_ActivityMemcpy6;
#else
using KernelRecord = CUpti_ActivityKernel9;
using CopyRecord = CUpti_ActivityMemcpy5;
#endif

// The functions of CUPTI, found once. Its version is that of the toolkit, which decides the layout of records.
struct Cupti {
  void* const library = open_library(format("libcupti.so.{}", CUDART_VERSION / 1000).c_str());
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks =
      find<decltype(&cuptiActivityRegisterCallbacks)>("cuptiActivityRegisterCallbacks");
  decltype(&cuptiActivityEnable) enable = find<decltype(&cuptiActivityEnable)>("cuptiActivityEnable");
  decltype(&cuptiActivityDisable) disable = find<decltype(&cuptiActivityDisable)>("cuptiActivityDisable");
  decltype(&cuptiActivityFlushAll) flush_all = find<decltype(&cuptiActivityFlushAll)>("cuptiActivityFlushAll");
  decltype(&cuptiActivityGetNextRecord) next_record = find<decltype(&cuptiActivityGetNextRecord)>("cuptiActivityGetNextRecord");
  decltype(&cuptiGetTimestamp) timestamp = find<decltype(&cuptiGetTimestamp)>("cuptiGetTimestamp");
  decltype(&cuptiGetResultString) result_string = find<decltype(&cuptiGetResultString)>("cuptiGetResultString");

  template <class Function>
  Function find(const char* name) const {
    return reinterpret_cast<Function>(function_in(library, name));
  }
  void require(CUptiResult result, const char* call) const {
    if (result == CUPTI_SUCCESS) return;
    const char* text = "unknown error";
    result_string(result, &text);
    throw DeviceError(format("CUPTI: {}: {}; another profiler may hold the GPU, or the user may not profile", call, text));
  }
};
const Cupti& cupti() {
  static const Cupti functions;
  return functions;
}

constexpr CUpti_ActivityKind recorded[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
                                           CUPTI_ACTIVITY_KIND_MEMSET};
constexpr std::size_t buffer_bytes = std::size_t(4) << 20;

// CUPTI delivers buffers on a thread of its own.
std::mutex records_mutex;
std::vector<TracedActivity> records;

std::string readable(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(mangled, nullptr, nullptr, &status), std::free);
  return status == 0 ? name.get() : mangled;
}

const char* direction(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD: return "host to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH: return "device to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD: return TracedActivity::between_devices;
    default: return "copy";
  }
}

void add(const CUpti_Activity* record) {
  using Kind = TracedActivity::Kind;
  if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || record->kind == CUPTI_ACTIVITY_KIND_KERNEL) {
    const auto* k = reinterpret_cast<const KernelRecord*>(record);
    records.push_back({Kind::kernel, readable(k->name), std::int64_t(k->start), std::int64_t(k->end), 0, k->streamId});
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    const auto* c = reinterpret_cast<const CopyRecord*>(record);
    records.push_back(
        {Kind::copy, direction(c->copyKind), std::int64_t(c->start), std::int64_t(c->end), std::int64_t(c->bytes), c->streamId});
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY2) {
    const auto* c = reinterpret_cast<const CUpti_ActivityMemcpyPtoP4*>(record);
    records.push_back(
        {Kind::copy, TracedActivity::to_other_device, std::int64_t(c->start), std::int64_t(c->end), std::int64_t(c->bytes), c->streamId});
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    const auto* s = reinterpret_cast<const CUpti_ActivityMemset4*>(record);
    records.push_back({Kind::clear, "clear", std::int64_t(s->start), std::int64_t(s->end), std::int64_t(s->bytes), s->streamId});
  }
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, buffer_bytes));
  *bytes = *buffer != nullptr ? buffer_bytes : 0;
  *most_records = 0;
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  const std::lock_guard lock(records_mutex);
  CUpti_Activity* record = nullptr;
  while (cupti().next_record(buffer, valid, &record) == CUPTI_SUCCESS) add(record);
  std::free(buffer);
}

}  // namespace

void begin_trace() {
  const Cupti& c = cupti();
  c.require(c.register_callbacks(give_buffer, take_buffer), "cuptiActivityRegisterCallbacks");
  for (const CUpti_ActivityKind kind : recorded) c.require(c.enable(kind), "cuptiActivityEnable");
}

std::int64_t trace_clock() {
  std::uint64_t now = 0;
  cupti().require(cupti().timestamp(&now), "cuptiGetTimestamp");
  return std::int64_t(now);
}

std::vector<TracedActivity> end_trace() {
  const Cupti& c = cupti();
  cudaDeviceSynchronize();
  c.require(c.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
  for (const CUpti_ActivityKind kind : recorded) c.require(c.disable(kind), "cuptiActivityDisable");
  const std::lock_guard lock(records_mutex);
  std::vector<TracedActivity> out = std::move(records);
  records.clear();
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return out;
}

#else

namespace {
[[noreturn]] void no_cupti() {
  throw DeviceError("this program was compiled without CUPTI's header, cupti.h; install CUPTI of the CUDA toolkit and build again");
}
}  // namespace
void begin_trace() { no_cupti(); }
std::int64_t trace_clock() { no_cupti(); }
std::vector<TracedActivity> end_trace() { no_cupti(); }

#endif

}  // namespace octet::cuda
