#include "octet/tokenizer/stopped_text.hpp"

#include <algorithm>
#include <utility>

#include "octet/base/check.hpp"

namespace octet::tokenizer {

StoppedText::StoppedText(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& s : stops_) check(!s.empty(), "stop strings must not be empty");
}

std::string StoppedText::next(std::string_view piece) {
  if (stopped_) return "";
  waiting_ += piece;
  std::size_t end = waiting_.size();  // of the known text: where a string begins, or may begin
  for (const std::string& stop : stops_) {
    if (const std::size_t at = waiting_.find(stop); at != std::string::npos) stopped_ = true, end = std::min(end, at);
    for (std::size_t n = std::min(stop.size() - 1, waiting_.size()); n > 0; --n)
      if (std::string_view(waiting_).ends_with(std::string_view(stop).substr(0, n))) {
        end = std::min(end, waiting_.size() - n);
        break;
      }
  }
  if (stopped_) {
    end = waiting_.size();
    for (const std::string& stop : stops_) end = std::min(end, waiting_.find(stop));
  }
  std::string known = waiting_.substr(0, end);
  waiting_.erase(0, end);
  return known;
}

std::string StoppedText::finish() { return stopped_ ? "" : std::exchange(waiting_, ""); }

}  // namespace octet::tokenizer
