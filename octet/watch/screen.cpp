#include "octet/watch/screen.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "octet/base/text.hpp"
#include "octet/telemetry/metric.hpp"
#include "octet/telemetry/quantization_loss.hpp"
#include "octet/telemetry/throttling.hpp"

namespace octet::watch {
namespace {

constexpr std::size_t most_tensors = 8, most_incidents = 5;

std::string number(double x, int digits = 4) {
  if (!std::isfinite(x)) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.*g", digits, x);
  return text;
}

std::string time_text(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  const auto s = (long long)(seconds);
  char text[64];
  if (s < 3600) std::snprintf(text, sizeof text, "%lld min %02lld s", s / 60, s % 60);
  else std::snprintf(text, sizeof text, "%lld h %02lld min", s / 3600, s / 60 % 60);
  return text;
}

// The last values as a line of block characters from the smallest to the largest; a gap where nothing is finite.
std::string spark_line(const Curve& curve, int width) {
  static constexpr const char* blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const auto points = curve.merged(0, INT64_MAX, std::size_t(std::max(width, 2)));
  Range all;
  for (const CurvePoint& p : points) all.add(float(p.mean()));
  std::string out;
  for (const CurvePoint& p : points) {
    const double share = (p.mean() - double(all.low)) / std::max(double(all.high) - double(all.low), 1e-30);
    out += std::isfinite(p.mean()) ? blocks[std::clamp(int(share * 8), 0, 7)] : " ";
  }
  return out;
}

class Lines {
 public:
  explicit Lines(const ScreenSize& size) : size_(size) {}
  /// Text of one-column characters.
  void add(const std::string& text) {
    if (count_ >= size_.rows - 1) return;  // the last row is left free: a newline there would scroll
    std::string cut;
    int columns = 0;
    for (std::size_t i = 0; i < text.size() && columns < size_.columns; ++columns) {
      do cut += text[i++];
      while (i < text.size() && (text[i] & 0xC0) == 0x80);
    }
    text_ += cut + "\n", ++count_;
  }
  const std::string& text() const { return text_; }

 private:
  ScreenSize size_;
  int count_ = 0;
  std::string text_;
};

void add_step(Lines& lines, const WatchedRun& run, const telemetry::StepEvent& e) {
  const RunHistory& history = run.history();
  const std::int64_t planned = run.facts().steps;
  const double left = planned > 0 ? double(planned - e.step) * history.typical_step_seconds() : NAN;
  lines.add(format("step {}{}   {} tokens   time left {}", grouped(e.step), planned > 0 ? format(" of {}", grouped(planned)) : "",
                   grouped(e.tokens), run.condition() == Condition::running ? time_text(left) : "-"));
  lines.add(format("loss {} (z {})   held-out {}   skipped {}", number(e.loss, 5), number(e.loss_z, 2),
                   history.last_eval() ? number(history.last_eval()->loss, 5) : "-", history.skipped()));
  lines.add(format("gradient norm {} (z {})   parameter norm {}   learning rate {}", number(e.grad_norm), number(e.grad_norm_z, 2),
                   number(e.param_norm), number(e.learning_rate, 3)));
  const std::string rate = std::isfinite(e.tokens_per_second) ? grouped(std::llround(e.tokens_per_second)) : "-";
  lines.add(format("tokens/s {}, {}% of the machine's limit   memory {}", rate, number(100 * e.limit_share, 3),
                   bytes_text(double(e.memory_bytes))));
}

// Of runs that know their GPUs.
void add_gpus(Lines& lines, const RunHistory& history) {
  if (!history.last_gpus()) return;
  const telemetry::Event event = *history.last_gpus();
  const auto value = [&](const char* name) { return telemetry::metric(name).of(event).value_or(NAN); };
  std::int64_t reasons = 0;
  for (const std::int64_t bits : history.last_gpus()->throttling) reasons |= bits;
  const std::string why = telemetry::throttling_text(reasons);
  lines.add(format("GPU {}% busy   {} W   {} C   {} MHz{}", number(100 * value("gpu_utilization"), 3), number(value("gpu_power"), 3),
                   number(value("gpu_temperature"), 3), number(value("gpu_clock")), why.empty() ? "" : "   " + why));
}

// The tensors of the last health event with the most saturated and flushed values, then the SQNR farthest below that of rounding alone.
void add_tensors(Lines& lines, const WatchedRun& run) {
  const auto& health = run.history().last_health();
  const auto& quantizers = run.facts().quantizers;
  if (!health || quantizers.empty()) return;
  std::vector<std::size_t> order(quantizers.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto lost = [&](std::size_t i) { return health->saturated[i] + health->flushed[i]; };
  const std::vector<float> below = telemetry::below_rounding(*health, quantizers);
  const auto distance = [&](std::size_t i) { return std::isfinite(below[i]) ? below[i] : -1e9f; };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return lost(a) != lost(b) ? lost(a) > lost(b) : distance(a) > distance(b); });
  std::size_t width = 6;
  for (const auto& q : quantizers) width = std::max(width, q.path.size() + q.operand.size() + 1);
  width = std::min<std::size_t>(width, 32);
  const auto cell = [](const std::string& text, std::size_t columns) {
    return text.size() < columns ? text + std::string(columns - text.size(), ' ') : text;
  };
  lines.add("");
  lines.add(cell(format("tensor, step {}", health->step), width) + "  headroom  saturated  flushed    SQNR dB  below rounding");
  for (std::size_t i = 0; i < std::min(order.size(), most_tensors); ++i) {
    const std::size_t t = order[i];
    lines.add(cell(printable(quantizers[t].path + " " + quantizers[t].operand, width), width) + "  " +
              cell(number(std::round(1000 * double(health->headroom_bits[t])) / 1000 + 0.0, 3), 10) +
              cell(number(double(health->saturated[t]), 3), 11) + cell(number(double(health->flushed[t]), 3), 11) +
              cell(number(double(health->sqnr_db[t]), 3), 9) + number(std::round(100 * double(below[t])) / 100 + 0.0, 3));
  }
}

}  // namespace

std::string screen_text(const WatchedRun& run, const ScreenSize& size) {
  Lines lines(size);
  const RunHistory& history = run.history();
  const Condition condition = run.condition();
  lines.add(format("{}   {}   {}{}", printable(run.name()), printable(run.facts().recipe), to_text(condition),
                   condition == Condition::running || history.end() ? "" : format(", last event {} ago", time_text(run.idle_seconds()))));
  if (!run.problem().empty()) lines.add(printable(run.problem()));
  if (!run.complete()) lines.add(format("reading the run, {}%; samples are shown", number(100 * run.share_read(), 3)));
  if (!history.last_step()) {
    lines.add("no step yet");
    return lines.text();
  }
  add_step(lines, run, *history.last_step());
  add_gpus(lines, history);
  lines.add("");
  lines.add("loss  " + spark_line(history.curves().find("loss")->second, size.columns - 6));
  add_tensors(lines, run);
  if (!history.incidents().empty()) lines.add(""), lines.add(format("incidents, {} in all", history.incidents_seen()));
  const auto& incidents = history.incidents();
  for (std::size_t i = 0; i < std::min(incidents.size(), most_incidents); ++i) {
    const auto& e = incidents[incidents.size() - 1 - i].incident;
    lines.add(format("  step {} {}: {}", e.step, printable(e.kind), printable(e.text)));
  }
  return lines.text();
}

}  // namespace octet::watch
