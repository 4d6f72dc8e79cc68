#include "octet/telemetry/list_events.hpp"

#include <charconv>
#include <limits>

namespace octet::telemetry {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Reads a line piece by piece; each call returns false where the line has another form.
class Scanner {
 public:
  explicit Scanner(std::string_view line) : at_(line.data()), end_(line.data() + line.size()) {}

  bool text(std::string_view wanted) {
    if (!std::string_view(at_, std::size_t(end_ - at_)).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }
  bool count(std::int64_t& x) {
    if (at_ == end_ || !is_digit(*at_) || (*at_ == '0' && at_ + 1 < end_ && is_digit(at_[1]))) return false;
    const auto [stop, error] = std::from_chars(at_, end_, x);
    at_ = stop;
    return error == std::errc();
  }
  /// A JSON number, or null for NaN.
  bool number(double& x) {
    if (text("null")) {
      x = NAN;
      return true;
    }
    const char* digits = at_ < end_ && *at_ == '-' ? at_ + 1 : at_;
    if (digits == end_ || !is_digit(*digits) || (*digits == '0' && digits + 1 < end_ && is_digit(digits[1]))) return false;
    const auto [stop, error] = std::from_chars(at_, end_, x);
    if (error != std::errc() || stop[-1] == '.') return false;
    at_ = stop;
    return true;
  }
  bool list(std::vector<float>& out) {
    if (!text("[")) return false;
    if (text("]")) return true;
    do {
      double x = 0;
      if (!number(x) || std::fabs(x) > double(std::numeric_limits<float>::max())) return false;  // those the general parser judges
      out.push_back(float(x));
    } while (text(","));
    return text("]");
  }
  bool list(std::vector<std::int64_t>& out) {
    if (!text("[")) return false;
    if (text("]")) return true;
    do {
      std::int64_t x = 0;
      if (!count(x)) return false;
      out.push_back(x);
    } while (text(","));
    return text("]");
  }
  bool at_end() const { return at_ == end_; }

 private:
  const char *at_, *end_;
};

bool head(Scanner& s, std::int64_t& step, double& time) {
  return s.text(",\"step\":") && s.count(step) && s.text(",\"time\":") && s.number(time);
}

}  // namespace

std::optional<Event> scan_list_event(std::string_view line) {
  Scanner s(line);
  if (s.text("{\"event\":\"scales\"")) {
    ScalesEvent e;
    if (head(s, e.step, e.time) && s.text(",\"amax\":") && s.list(e.amax) && s.text(",\"scale_min\":") && s.list(e.scale_min) &&
        s.text(",\"scale_max\":") && s.list(e.scale_max) && s.text("}") && s.at_end())
      return e;
  } else if (s.text("{\"event\":\"health\"")) {
    HealthEvent e;
    if (head(s, e.step, e.time) && s.text(",\"headroom_bits\":") && s.list(e.headroom_bits) && s.text(",\"saturated\":") &&
        s.list(e.saturated) && s.text(",\"flushed\":") && s.list(e.flushed) && s.text(",\"sqnr_db\":") && s.list(e.sqnr_db) &&
        s.text(",\"nonfinite\":") && s.list(e.nonfinite) && s.text("}") && s.at_end())
      return e;
  }
  return std::nullopt;
}

}  // namespace octet::telemetry
