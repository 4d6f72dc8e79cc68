#pragma once

#include <mutex>
#include <optional>

#include "octet/comm/communicator.hpp"
#include "octet/telemetry/trace_file.hpp"
#include "octet/tensor/stream.hpp"
#include "octet/train/step/step.hpp"

namespace octet::train {

/// Records the timeline of one rank during some steps of a run: a GPU's kernels and copies, on a CPU the parts of each step and the calls
/// of its communicator. The first steps of a process are left out: they choose algorithms of GEMMs and record their graphs.
class StepTracer final : public PhaseListener, comm::CallListener {
 public:
  static constexpr std::int64_t left_out = 3;
  static constexpr const char* file_name = "trace.json";

  /// Make it before the engine. `ranks` outlives it. Throws DeviceError as Trace.
  StepTracer(Device, std::int64_t steps, comm::Communicator& ranks);
  ~StepTracer() override { ranks_.set_listener(nullptr); }

  /// Records a GPU's parts, too: each then begins when its queued work of the part before is done, which costs time.
  void wait_for_parts(Stream& stream) { waits_ = &stream; }
  void begin_step();
  void begins(StepPhase) override;
  /// After the step of that number. True when it was the last to be traced.
  bool end_step(std::int64_t step);
  /// Ends the recording and returns the trace.
  telemetry::StepTrace finish();

 private:
  void piece(const std::string& pass, std::string_view piece, double begin, double end) override;
  void called(const comm::Call&, std::int64_t sent_bytes, double begin, double end) override;
  void under_way(const comm::Call&, std::int64_t sent_bytes, double begin, double end) override;
  std::int64_t now() const;
  void end_part();
  bool records_parts() const { return !trace_.gpu || waits_ != nullptr; }

  comm::Communicator& ranks_;
  Stream* waits_ = nullptr;
  std::int64_t steps_, seen_ = 0, began_ = 0;
  bool in_step_ = false;
  std::optional<TracedSpan> part_;
  std::mutex mutex_;  // of the exchanges: another thread may make calls
  std::optional<Trace> gpu_trace_;
  telemetry::StepTrace trace_;
};

/// The file of all ranks' traces, the same on each of them. All ranks call it.
std::string trace_of_ranks(Stream&, comm::Communicator&, const telemetry::StepTrace& own);

}  // namespace octet::train
