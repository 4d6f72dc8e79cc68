#include "octet/telemetry/list_events.hpp"

#include <charconv>
#include <limits>

#include "octet/telemetry/event_fields.hpp"

namespace octet::telemetry {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Reads the fields of a line in their order, until the line has another form.
class Scanner final : public EventVisitor {
 public:
  explicit Scanner(std::string_view line) : at_(line.data()), end_(line.data() + line.size()) {}

  void field(const Field& f, double& x) override { good_ = begins(f) && number(x); }
  void field(const Field& f, std::int64_t& x) override { good_ = begins(f) && count(x); }
  void field(const Field& f, std::vector<float>& x) override {
    if (!lacks(f)) good_ = begins(f) && list(x);
  }
  void field(const Field& f, std::vector<std::int64_t>& x) override { good_ = begins(f) && list(x); }
  void field(const Field&, bool&) override { good_ = false; }
  void field(const Field&, std::string&) override { good_ = false; }
  void field(const Field&, Severity&) override { good_ = false; }
  void field(const Field&, std::vector<std::string>&) override { good_ = false; }

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
  bool ends() { return good_ && text("}") && at_ == end_; }

 private:
  bool lacks(const Field& f) {
    const char* const before = at_;
    const bool here = begins(f);
    at_ = before;
    return f.may_lack && !here;
  }
  bool begins(const Field& f) { return good_ && text(",\"") && text(f.name) && text("\":"); }

  const char *at_, *end_;
  bool good_ = true;
};

template <class E>
std::optional<Event> scanned(Scanner& s) {
  E e;
  visit_fields(s, e);
  if (!s.ends()) return std::nullopt;
  return e;
}

}  // namespace

std::optional<Event> scan_list_event(std::string_view line) {
  Scanner s(line);
  if (s.text("{\"event\":\"scales\"")) return scanned<ScalesEvent>(s);
  if (s.text("{\"event\":\"health\"")) return scanned<HealthEvent>(s);
  return std::nullopt;
}

}  // namespace octet::telemetry
