#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octet::telemetry::report {

/// Checks the part of XML that the report uses: elements that close in order, quoted attributes of different names, no stray
/// < or &, known references only. "" when `s` is well-formed, otherwise what is wrong and where.
class WellFormed {
 public:
  static std::string fault(std::string_view s) { return WellFormed(s).run(); }

 private:
  explicit WellFormed(std::string_view s) : s_(s) {}

  std::string run() {
    while (at_ < s_.size() && fault_.empty()) {
      if (s_[at_] != '<') content();
      else if (rest().substr(0, 2) == "</") close();
      else open();
    }
    if (fault_.empty() && !open_.empty()) stop("never closed: " + open_.back());
    return fault_;
  }
  std::string_view rest() const { return at_ < s_.size() ? s_.substr(at_) : std::string_view(); }
  void stop(const std::string& why) {
    if (fault_.empty()) fault_ = why + " at byte " + std::to_string(at_) + ": " + std::string(rest().substr(0, 60));
    at_ = s_.size();
  }
  void reference() {
    for (const char* known : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"})
      if (rest().starts_with(known)) return void(at_ += std::string_view(known).size());
    stop("stray &");
  }
  void content() {
    while (at_ < s_.size() && s_[at_] != '<') s_[at_] == '&' ? reference() : void(++at_);
  }
  std::string name() {
    const auto length = rest().find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-:");
    const std::string out(rest().substr(0, length));
    at_ += out.size();
    if (out.empty()) stop("no name");
    return out;
  }
  void close() {
    at_ += 2;
    const std::string tag = name();
    if (open_.empty() || open_.back() != tag) return stop("closes " + tag);
    open_.pop_back();
    if (at_ >= s_.size() || s_[at_++] != '>') stop("no >");
  }
  void open() {
    ++at_;
    const std::string tag = name();
    std::vector<std::string> seen;
    while (at_ < s_.size() && s_[at_] == ' ') {
      ++at_;
      seen.push_back(name());
      for (std::size_t i = 0; i + 1 < seen.size(); ++i)
        if (seen[i] == seen.back()) stop("attribute twice");
      if (rest().substr(0, 2) != "=\"") return stop("no value");
      for (at_ += 2; at_ < s_.size() && s_[at_] != '"';) s_[at_] == '&' ? reference() : s_[at_] == '<' ? stop("< in a value") : void(++at_);
      ++at_;
    }
    if (rest().substr(0, 2) == "/>") return void(at_ += 2);
    if (at_ >= s_.size() || s_[at_] != '>') return stop("no >");
    ++at_, open_.push_back(tag);
  }

  std::string_view s_;
  std::size_t at_ = 0;
  std::vector<std::string> open_;
  std::string fault_;
};

}  // namespace octet::telemetry::report
