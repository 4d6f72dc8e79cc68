#include "octet/telemetry/step_line.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "octet/base/text.hpp"

namespace octet::telemetry {
namespace {

/// 5, "m", 7, "s" -> "5m07s".
std::string two_units(long long large, char unit, long long small, char small_unit) {
  char buffer[48];
  std::snprintf(buffer, sizeof buffer, "%lld%c%02lld%c", large, unit, small, small_unit);
  return buffer;
}

/// x with about four significant digits: 0.812, 12.3, 1.23e+05.
std::string short_number(double x) {
  if (!std::isfinite(x)) return "not finite";
  char buffer[32];
  const double size = std::fabs(x);
  std::snprintf(buffer, sizeof buffer, size >= 10000 || (size < 0.001 && size > 0) ? "%.2e" : "%#.4g", x);
  return buffer;
}

std::string with_z(const std::string& name, const std::string& value, double z) {
  std::string out = name + " " + value;
  if (!std::isfinite(z)) return out;
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, " (%+.1fz)", std::clamp(z, -999.9, 999.9));
  return out + buffer;
}

std::string step_text(const StepEvent& e, const LineContext& context) {
  std::string step = std::to_string(e.step);
  if (context.steps <= 0) return "step " + step;
  const std::string total = std::to_string(context.steps);
  if (step.size() < total.size()) step.insert(0, total.size() - step.size(), ' ');
  return "step " + step + "/" + total;
}

/// A part of the line; if not all fit, those with the lowest `wanted` are dropped first.
struct Field {
  int wanted;
  std::string text;
};

std::vector<Field> fields(const StepEvent& e, const LineContext& context) {
  char rate[32];
  std::snprintf(rate, sizeof rate, "lr %.2e", e.learning_rate);
  std::vector<Field> out{{7, step_text(e, context)}};
  if (e.skipped) out.push_back({6, "SKIPPED"});
  out.push_back({5, with_z("loss", std::isfinite(e.loss) ? fixed(e.loss, 4) : "not finite", e.loss_z)});
  if (std::isfinite(e.mtp_loss)) out.push_back({4, "mtp " + fixed(e.mtp_loss, 4)});
  if (e.preferences.known()) {
    out.push_back({4, "margin " + short_number(e.preferences.margin())});
    out.push_back({4, "accuracy " + fixed(100 * e.preferences.accuracy, 0) + "%"});
  }
  out.push_back({2, with_z("grad", short_number(e.grad_norm), e.grad_norm_z)});
  out.push_back({1, rate});
  if (e.tokens_per_second > 0 && e.tokens_per_second < 1e15) out.push_back({3, grouped(std::llround(e.tokens_per_second)) + " tok/s"});
  if (e.limit_share > 0 && e.limit_share < 1e3) out.push_back({0, fixed(100 * e.limit_share, 0) + "% of limit"});
  if (context.eta_seconds >= 0) out.push_back({4, "eta " + duration_text(context.eta_seconds)});
  return out;
}

std::string joined(const std::vector<Field>& fields) {
  std::string out = fields[0].text;
  for (std::size_t i = 1; i < fields.size(); ++i) out += "  " + fields[i].text;
  return out;
}

/// `width` cells of which the first `fraction` are full, by eighths of a cell.
std::string bar(double fraction, int width) {
  static const char* eighths[] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
  const int filled = int(std::lround((std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0) * width * 8));
  std::string out = "▕";
  for (int i = 0; i < width; ++i) out += eighths[std::clamp(filled - 8 * i, 0, 8)];
  return out + "▏";
}

}  // namespace

std::string duration_text(double seconds) {
  if (!(seconds >= 0) || seconds > 1e11) return "?";
  const long long s = std::llround(seconds), m = s / 60, h = m / 60, d = h / 24;
  if (d > 0) return two_units(d, 'd', h % 24, 'h');
  if (h > 0) return two_units(h, 'h', m % 60, 'm');
  if (m > 0) return two_units(m, 'm', s % 60, 's');
  return std::to_string(s) + "s";
}

std::string format_step_line(const StepEvent& e, const LineContext& context) { return joined(fields(e, context)); }

std::string format_end_line(const EndEvent& e) {
  std::string out = format("{}: {} steps", e.reason, e.step);
  if (std::isfinite(e.train_loss)) out += ", train loss " + fixed(e.train_loss, 4);
  if (std::isfinite(e.eval_loss)) out += ", eval loss " + fixed(e.eval_loss, 4);
  if (e.tokens_per_second > 0 && e.tokens_per_second < 1e15) out += ", " + grouped(std::llround(e.tokens_per_second)) + " tok/s";
  return out + format(", {} skipped", e.skipped);
}

std::string format_progress_line(const StepEvent& e, const LineContext& context, int columns) {
  constexpr int narrowest = 10, widest = 30, around = 4;  // of the bar's cells; `around`: its two ends and two spaces
  std::vector<Field> parts = fields(e, context);
  // Every part is ASCII: its bytes are its columns.
  const auto too_long = [&] { return int(joined(parts).size()) + narrowest + around > columns; };
  const auto less_wanted = [](const Field& a, const Field& b) { return a.wanted < b.wanted; };
  while (parts.size() > 1 && too_long()) parts.erase(std::min_element(parts.begin(), parts.end(), less_wanted));
  const std::string text = joined(parts);
  const int width = std::min(widest, columns - int(text.size()) - around);
  if (width > 0) return bar(context.fraction_done, width) + "  " + text;
  return text.substr(0, std::size_t(std::max(columns, 0)));
}

}  // namespace octet::telemetry
