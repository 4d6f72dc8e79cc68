#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace octet {

/// One activity of a GPU. Times are nanoseconds of one clock.
struct TracedActivity {
  enum class Kind : std::uint8_t { kernel, copy, clear };
  // Names of copies. That of a rank to another one's GPU is either of them, as the driver tells.
  static constexpr const char *between_devices = "device to device", *to_other_device = "device to other device";
  Kind kind = Kind::kernel;
  std::string name;  // of a kernel: its C++ name; of a copy: its direction, "host to device"
  std::int64_t begin = 0, end = 0;
  std::int64_t bytes = 0;   // copied or cleared
  std::uint32_t queue = 0;  // activities of one queue run one after the other
};

/// A part of a run on the host, such as a step, by the clock of the activities.
struct TracedSpan {
  std::string name;
  std::int64_t begin = 0, end = 0;
};

/// Records every kernel and copy of this process on a GPU while it exists, those of replayed graphs too. One at a time.
class Trace {
 public:
  /// Loads the profiling library of the GPU. Throws DeviceError when it is not found or another tool holds it.
  Trace();
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// Now, by the clock of the activities.
  std::int64_t now() const;
  /// Ends the recording, after all work is done, and returns the activities by their begin.
  std::vector<TracedActivity> finish();

 private:
  bool recording_ = true;
};

}  // namespace octet
