#include "octet/telemetry/tensorboard/board_writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "octet/base/check.hpp"
#include "octet/base/log.hpp"
#include "octet/telemetry/metric.hpp"

namespace octet::telemetry {
namespace {

constexpr std::string_view prefix = "events.out.tfevents.", suffix = ".octet";

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

/// The time in the name of an earlier event file, or 0 for other names.
std::int64_t time_of(std::string_view name) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix) || name.size() <= prefix.size() + suffix.size()) return 0;
  const char *begin = name.data() + prefix.size(), *end = name.data() + name.size() - suffix.size();
  std::int64_t time = 0;
  const auto [rest, error] = std::from_chars(begin, end, time);
  return error == std::errc() && rest == end ? time : 0;
}

/// A name that sorts after all existing ones.
std::string next_path(const std::string& folder) {
  std::int64_t time = std::int64_t(now());
  std::error_code ignored;
  for (std::filesystem::directory_iterator at(folder, ignored), end; !ignored && at != end; at.increment(ignored))
    time = std::max(time, time_of(at->path().filename().string()) + 1);
  return format("{}/{}{}{}", folder, prefix, time, suffix);
}

/// A cell of a table of Markdown that shows the text as it is.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\`*_[]<>|#~").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

/// A block of code of Markdown, which shows the text as it is.
std::string code_block(std::string_view text) {
  std::string out = "    ";
  for (const char c : text) {
    out += c;
    if (c == '\n') out += "    ";
  }
  return out + "\n";
}

}  // namespace

BoardWriter::BoardWriter(const std::string& folder, std::span<const QuantizerFacts> quantizers, std::int64_t first_step,
                         std::int64_t skipped, std::span<const std::string> shared_scales)
    : path_(next_path(folder)), file_(path_, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0666), skipped_(skipped) {
  if (!file_.ok()) refuse_file("make", path_, errno);
  for (const QuantizerFacts& q : quantizers) {
    const std::string site = format("tensors/{}/{}/", q.path, q.operand);
    const bool one = q.block == "tensor";
    sites_.push_back({.amax = site + "amax",
                      .scale = site + (one ? "scale" : "scale_min"),
                      .scale_max = one ? "" : site + "scale_max",
                      .saturated = site + "saturated",
                      .flushed = site + "flushed",
                      .deviation = site + "scale_deviation",
                      .lossy = site + "lossy_blocks"});
  }
  for (const std::string& tensor : shared_scales)
    sums_.push_back({format("sums/{}/mu", tensor), format("sums/{}/overflow", tensor), format("sums/{}/underflow", tensor)});
  append(version_message(now()));
  append(restart_message(now(), first_step));
}

void BoardWriter::add(const Event& event) {
  std::vector<Scalar> scalars;
  for (const Metric& m : metrics())
    if (const std::optional<double> x = *m.tag == 0 ? std::nullopt : m.of(event)) scalars.push_back({m.tag, float(*x)});
  std::visit(
      [&](const auto& e) {
        take(e, scalars);
        if (!scalars.empty()) append(scalars_message(now(), e.step, scalars));
      },
      event);
}

void BoardWriter::add_plan(std::int64_t step, std::span<const PlanEntry> plan) {
  std::string table = "| layer or variable | precision | reason |\n|---|---|---|\n";
  for (const PlanEntry& row : plan) table += format("| {} | {} | {} |\n", cell(row.path), cell(row.precision), cell(row.why));
  append(text_message(now(), step, "plan", table));
}

void BoardWriter::take(const StepEvent& e, Scalars& out) {
  skipped_ += e.skipped ? 1 : 0;
  out.push_back({"optimizer/skipped_steps", float(skipped_)});
}

void BoardWriter::take(const ScalesEvent& e, Scalars&) { scales_ = e; }

void BoardWriter::take(const HealthEvent& e, Scalars& out) {
  const bool scales = scales_.step == e.step;
  check(e.saturated.size() == sites_.size() && e.flushed.size() == sites_.size() && (!scales || scales_.amax.size() == sites_.size()),
        "BoardWriter: events of step {} must have {} entries, one per quantizer", e.step, sites_.size());
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    const Site& site = sites_[i];
    if (scales) {
      out.push_back({site.amax, scales_.amax[i]});
      out.push_back({site.scale, scales_.scale_min[i]});
      if (!site.scale_max.empty()) out.push_back({site.scale_max, scales_.scale_max[i]});
    }
    out.push_back({site.saturated, e.saturated[i]});
    out.push_back({site.flushed, e.flushed[i]});
    if (i < e.scale_deviation.size() && std::isfinite(e.scale_deviation[i])) out.push_back({site.deviation, e.scale_deviation[i]});
    if (i < e.lossy_blocks.size() && std::isfinite(e.lossy_blocks[i])) out.push_back({site.lossy, e.lossy_blocks[i]});
  }
}

void BoardWriter::take(const SharedScalesEvent& e, Scalars& out) {
  const std::size_t n = sums_.size();
  check(n > 0 && e.mu.size() == n && e.overflow.size() == n && e.underflow.size() == n,
        "BoardWriter: shared scales of step {} must have {} entries, one per tensor", e.step, n);
  for (std::size_t i = 0; i < n; ++i)
    out.insert(out.end(), {{sums_[i].mu, e.mu[i]}, {sums_[i].overflow, e.overflow[i]}, {sums_[i].underflow, e.underflow[i]}});
}

void BoardWriter::take(const ExpertsEvent& e, Scalars& out) {
  routing_.clear();
  for (const std::int64_t layer : e.layers) routing_.push_back(format("routing/layers.{}/entropy", layer));
  for (std::size_t i = 0; i < e.layers.size(); ++i) out.push_back({routing_[i], float(load_entropy(e, i))});
}

void BoardWriter::take(const SampleEvent& e, Scalars&) { append(text_message(now(), e.step, "sample", code_block(e.prompt + e.text))); }

void BoardWriter::take(const AlertEvent& e, Scalars&) {
  const std::string place = e.path.empty() ? "" : format(" ({})", cell(e.path));
  append(text_message(now(), e.step, "alerts/" + e.rule,
                      format("**{}**{}: {}\n\n{}\n", name(e.severity), place, cell(e.text), cell(e.remedy))));
}

// TensorBoard drops the values of the steps that follow again.
void BoardWriter::take(const RecoveryEvent& e, Scalars&) {
  if (repeats_steps(e)) append(restart_message(now(), e.back_to + 1));
  const std::string place = e.path.empty() ? "" : format(" ({})", cell(e.path));
  append(text_message(now(), repeats_steps(e) ? e.back_to + 1 : e.step, "recovery/" + e.rung,
                      format("**{}** because of {}{}: {}\n", e.result, e.rule, place, cell(e.text))));
}

void BoardWriter::append(const std::string& message) {
  const std::string record = framed(message);
  std::size_t written = 0;
  while (written < record.size()) {
    const ssize_t n = ::write(file_.number(), record.data() + written, record.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    written += std::size_t(n);
  }
  if (written == record.size()) {
    end_ += std::int64_t(written);
    return;
  }
  const int reason = errno;
  // A reader stops at the first incomplete record.
  const bool cut = ::ftruncate(file_.number(), off_t(end_)) == 0;
  if (!warned_) log::warn("{} cannot be written, TensorBoard will lack steps: {}", printable(path_), std::strerror(reason));
  warned_ = true;
  if (!cut) file_.close();
}

}  // namespace octet::telemetry
