#include "octet/train/run/record/step_tracer.hpp"

#include <cmath>

#include "octet/base/clock.hpp"
#include "octet/base/host_name.hpp"
#include "octet/parallel/host_values.hpp"

namespace octet::train {
namespace {

std::int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

// The text of rank `root` on all ranks.
std::string told_by(Stream& stream, comm::Communicator& ranks, int root, std::string text) {
  const double own = double(text.size());
  const auto size = std::int64_t(parallel::gathered(stream, ranks, std::span(&own, 1))[std::size_t(root)]);
  text.resize(std::size_t(size));
  const Scope scope(stream);
  const Tensor bytes = stream.empty({size}, DType::u8);
  upload(stream, text.data(), bytes);
  ranks.broadcast(stream, bytes, root);
  ranks.finish(stream);
  download(stream, bytes, text.data());
  return text;
}

}  // namespace

StepTracer::StepTracer(Device device, std::int64_t steps, comm::Communicator& ranks) : ranks_(ranks), steps_(steps) {
  trace_.gpu = device != Device::cpu;
  if (trace_.gpu) gpu_trace_.emplace();
  else ranks_.set_listener(this);
}

std::int64_t StepTracer::now() const { return gpu_trace_ ? gpu_trace_->now() : nanoseconds(monotonic_seconds()); }

void StepTracer::begin_step() {
  began_ = now();
  in_step_ = seen_ >= left_out;
}

void StepTracer::begins(StepPhase part) {
  if (!in_step_ || !records_parts()) return;
  end_part();
  part_ = TracedSpan{std::string(name(part)), now(), 0};
}

void StepTracer::end_part() {
  if (!part_) return;
  if (waits_ != nullptr) wait(*waits_);
  part_->end = now();
  trace_.parts.push_back(*part_);
  part_.reset();
}

bool StepTracer::end_step(std::int64_t step) {
  end_part();
  if (in_step_) trace_.steps.push_back({format("step {}", step), began_, now()});
  in_step_ = false;
  ++seen_;
  return std::int64_t(trace_.steps.size()) == steps_;
}

void StepTracer::called(const comm::Call& call, std::int64_t sent_bytes, double begin, double end) {
  const std::lock_guard lock(mutex_);
  if (in_step_) trace_.exchanges.push_back({comm::to_text(call), nanoseconds(begin), nanoseconds(end), sent_bytes});
}

void StepTracer::under_way(const comm::Call& call, std::int64_t sent_bytes, double begin, double end) {
  const std::lock_guard lock(mutex_);
  if (in_step_) trace_.under_way.push_back({comm::to_text(call), nanoseconds(begin), nanoseconds(end), sent_bytes});
}

void StepTracer::piece(const std::string& pass, std::string_view piece, double begin, double end) {
  if (in_step_ && !trace_.gpu) trace_.pieces.push_back({format("{}: {}", pass, piece), nanoseconds(begin), nanoseconds(end)});
}

telemetry::StepTrace StepTracer::finish() {
  ranks_.set_listener(nullptr);
  if (gpu_trace_) trace_.activities = gpu_trace_->finish();
  return trace_;
}

std::string trace_of_ranks(Stream& stream, comm::Communicator& ranks, const telemetry::StepTrace& own) {
  const std::string name = ranks.size() > 1 ? format("rank {} on {}", ranks.rank(), host_name()) : "";
  const std::string events = telemetry::trace_events(own, {ranks.rank(), name});
  std::vector<std::string> all;
  for (int r = 0; r < ranks.size(); ++r) all.push_back(told_by(stream, ranks, r, events));
  return telemetry::trace_text(all);
}

}  // namespace octet::train
