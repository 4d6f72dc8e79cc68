#include "octet/telemetry/run_record.hpp"

#include <cerrno>
#include <cstdio>
#include <memory>

#include "octet/base/error.hpp"
#include "octet/base/path.hpp"
#include "octet/base/regular_file.hpp"
#include "octet/base/text.hpp"
#include "octet/telemetry/event_line.hpp"
#include "octet/telemetry/shared_json.hpp"

namespace octet::telemetry {
namespace {

/// Adds events to one series and keeps it within `limit`: beyond it every second event is dropped, stored ones and later ones.
template <class E>
class Series {
 public:
  Series(std::vector<E>& events, std::size_t limit) : events_(events), limit_(limit / 2 * 2) {}

  void add(E&& event) {
    while (!events_.empty() && events_.back().step >= event.step) events_.pop_back();
    if (count_++ % stride_ != 0) return;
    events_.push_back(std::move(event));
    if (events_.size() <= limit_) return;
    for (std::size_t i = 0; 2 * i < events_.size(); ++i) std::swap(events_[i], events_[2 * i]);
    events_.resize((events_.size() + 1) / 2);
    stride_ *= 2;
    count_ = 1;  // the event just added is kept: its index is the limit, which is even
  }

 private:
  std::vector<E>& events_;
  std::size_t limit_, count_ = 0, stride_ = 1;
};

class Reader {
 public:
  Reader(RunRecord& run, const ReadLimits& limits)
      : run_(run),
        limits_(limits),
        steps_(run.steps, limits.steps),
        evals_(run.evals, limits.steps),
        scales_(run.scales, limits.snapshots),
        health_(run.health, limits.snapshots),
        ranks_(run.ranks, limits.snapshots),
        shared_scales_(run.shared_scales, limits.snapshots),
        experts_(run.experts, limits.snapshots),
        machine_(run.machine, limits.snapshots),
        gpus_(run.gpus, limits.snapshots),
        samples_(run.samples, limits.samples) {}

  void line(std::string_view text, const std::string& where) {
    std::visit([&](auto&& event) { take(std::forward<decltype(event)>(event), where); }, parse_event(text, where));
  }

 private:
  void take(StepEvent&& e, const std::string&) { steps_.add(std::move(e)); }
  void take(RanksEvent&& e, const std::string&) { ranks_.add(std::move(e)); }
  void take(EvalEvent&& e, const std::string&) { evals_.add(std::move(e)); }
  void take(SampleEvent&& e, const std::string&) { samples_.add(std::move(e)); }
  void take(ExpertsEvent&& e, const std::string&) { experts_.add(std::move(e)); }
  void take(MachineEvent&& e, const std::string&) { machine_.add(std::move(e)); }
  void take(GpusEvent&& e, const std::string&) { gpus_.add(std::move(e)); }
  void take(EndEvent&& e, const std::string&) { run_.end = std::move(e); }
  void take(IncidentEvent&& e, const std::string&) {
    if (run_.incidents.size() < limits_.incidents) run_.incidents.push_back(std::move(e));
    else ++run_.incidents_left_out;
  }
  void take(AlertEvent&& e, const std::string&) {
    if (run_.alerts.size() < limits_.incidents) run_.alerts.push_back(std::move(e));
    else ++run_.alerts_left_out;
  }
  void take(RecoveryEvent&& e, const std::string&) {
    if (run_.recoveries.size() < limits_.incidents) run_.recoveries.push_back(std::move(e));
    else ++run_.recoveries_left_out;
  }
  void take(ScalesEvent&& e, const std::string& where) {
    want_length(where, "amax", e.amax.size());
    want_length(where, "scale_min", e.scale_min.size());
    want_length(where, "scale_max", e.scale_max.size());
    scales_.add(std::move(e));
  }
  void take(HealthEvent&& e, const std::string& where) {
    want_length(where, "headroom_bits", e.headroom_bits.size());
    want_length(where, "saturated", e.saturated.size());
    want_length(where, "flushed", e.flushed.size());
    want_length(where, "sqnr_db", e.sqnr_db.size());
    want_length(where, "nonfinite", e.nonfinite.size());
    if (!e.scale_deviation.empty()) want_length(where, "scale_deviation", e.scale_deviation.size());
    if (!e.lossy_blocks.empty()) want_length(where, "lossy_blocks", e.lossy_blocks.size());
    health_.add(std::move(e));
  }
  void take(SharedScalesEvent&& e, const std::string& where) {
    want_tensors(where, "mu", e.mu.size());
    want_tensors(where, "overflow", e.overflow.size());
    want_tensors(where, "underflow", e.underflow.size());
    shared_scales_.add(std::move(e));
  }
  void want_length(const std::string& where, std::string_view name, std::size_t got) const {
    want(where, name, got, run_.facts.quantizers.size(), "quantizer");
  }
  void want_tensors(const std::string& where, std::string_view name, std::size_t got) const {
    want(where, name, got, run_.facts.ranks.shared_scales.size(), "tensor of ranks.shared_scales");
  }
  static void want(const std::string& where, std::string_view name, std::size_t got, std::size_t wanted, const char* of) {
    if (got != wanted) throw DataError(format("{}: {} must have {} entries, one per {} of run.json, got {}", where, name, wanted, of, got));
  }

  RunRecord& run_;
  const ReadLimits& limits_;
  Series<StepEvent> steps_;
  Series<EvalEvent> evals_;
  Series<ScalesEvent> scales_;
  Series<HealthEvent> health_;
  Series<RanksEvent> ranks_;
  Series<SharedScalesEvent> shared_scales_;
  Series<ExpertsEvent> experts_;
  Series<MachineEvent> machine_;
  Series<GpusEvent> gpus_;
  Series<SampleEvent> samples_;
};

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// Calls take(text, line number) for every line that ends in a newline; returns whether bytes without one follow.
template <class Take>
bool each_line(std::FILE* file, const std::string& path, std::size_t limit, Take take) {
  std::string line;
  std::int64_t number = 1;
  char block[1 << 16];
  while (const std::size_t n = std::fread(block, 1, sizeof block, file)) {
    std::string_view rest(block, n);
    while (!rest.empty()) {
      const auto end = rest.find('\n');
      line += rest.substr(0, end);
      if (line.size() > limit) throw DataError(format("{}:{}: a line may have at most {} bytes", path, number, grouped((long long)limit)));
      if (end == std::string_view::npos) break;
      take(line, number++);
      line.clear();
      rest.remove_prefix(end + 1);
    }
  }
  if (std::ferror(file)) refuse_file("read", path, errno);
  return !line.empty();
}

void read_metrics(const std::string& path, const ReadLimits& limits, RunRecord& run) {
  const std::string shown = printable(path);
  RegularFile opened = RegularFile::open(path, Link::refuse);
  if (opened.size > std::uint64_t(limits.file_bytes))
    throw DataError(format("{}: the file may have at most {}, it has {}", shown, bytes_text(double(limits.file_bytes)),
                           bytes_text(double(opened.size))));
  const File file(::fdopen(opened.file.number(), "r"), &std::fclose);
  if (!file) refuse_file("read", path, errno);
  opened.file.release();
  Reader reader(run, limits);
  run.torn = each_line(file.get(), shown, limits.line_bytes,
                       [&](std::string_view text, std::int64_t number) { reader.line(text, format("{}:{}", shown, number)); });
}

}  // namespace

RunRecord read_run(const std::string& folder, const ReadLimits& limits) {
  RunRecord run;
  run.facts = read_run_facts(folder + "/run.json");
  const std::string metrics = folder + "/metrics.jsonl";
  const bool begun = exists(metrics);
  if (!begun && run.facts.state != RunState::running)
    throw DataError(format("{}: the file is missing, though the run is {}; {}", printable(metrics), run.facts.state, file_remedy));
  if (begun) with_remedy(file_remedy, [&] { read_metrics(metrics, limits, run); });
  return run;
}

}  // namespace octet::telemetry
