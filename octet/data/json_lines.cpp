#include "octet/data/json_lines.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/json/text.hpp"

namespace octet::data {
namespace {

/// The string of one field of the root object. Everything else is parsed and not stored.
class FieldReader final : public json::Events {
 public:
  FieldReader(const std::string& field, const std::string& place) : field_(field), place_(place) {}

  void on_null() override { other("null"); }
  void on_bool(bool) override { other("true or false"); }
  void on_negative(std::int64_t) override { other("a number"); }
  void on_integer(std::uint64_t) override { other("a number"); }
  void on_real(double) override { other("a number"); }
  void on_string(std::string& s) override {
    if (wanted()) found_ = std::move(s);
  }
  void on_key(std::string& key) override {
    here_ = depth_ == 1 && key == field_;
    if (here_ && found_) throw DataError(format("{}: the field \"{}\" occurs twice", place_, printable(field_)));
  }
  void on_begin(char bracket) override {
    other(bracket == '{' ? "an object" : "an array");
    ++depth_;
  }
  void on_end(char) override { --depth_; }

  std::string take() {
    if (!found_) throw DataError(format("{}: the field \"{}\" is missing", place_, printable(field_)));
    return std::move(*found_);
  }

 private:
  bool wanted() { return std::exchange(here_, false); }
  void other(const char* kind) {
    if (wanted()) throw DataError(format("{}: the field \"{}\" must be a string, got {}", place_, printable(field_), kind));
  }

  const std::string &field_, &place_;
  int depth_ = 0;
  bool here_ = false;  // the next value is that of the field
  std::optional<std::string> found_;
};

std::string text_of(std::string_view line, const std::string& field, const std::string& place) {
  FieldReader reader(field, place);
  json::read({.text = line,
              .file = place,
              .limits = {.bytes = JsonLines::most_line_bytes, .values = json::Limits::none, .piece = JsonLines::most_line_bytes},
              .place = json::Place::column},
             reader);
  return reader.take();
}

}  // namespace

LineCounts each_line(bool skip_bad, std::string_view hint, std::string_view lines, const std::string& path, std::uint64_t first_line,
                     const std::function<bool(std::string_view line, const std::string& place)>& take) {
  LineCounts counts;
  for (std::uint64_t number = first_line; !lines.empty(); ++number) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    try {
      ++(take(line, format("{}:{}", printable(path), number)) ? counts.documents : counts.empty);
    } catch (const DataError& e) {
      if (!skip_bad) throw DataError(format("{}; {}", e.what(), hint));
      ++counts.bad;
    }
  }
  return counts;
}

LineCounts each_document(const JsonLines& format_of, std::string_view lines, const std::string& path, std::uint64_t first_line,
                         const std::function<void(std::string_view text)>& document) {
  return each_line(format_of.skip_bad,
                   "correct the line, name another --field, or leave bad lines out with octet tokenize --skip-bad-lines", lines, path,
                   first_line, [&](std::string_view line, const std::string& place) {
                     const std::string text = text_of(line, format_of.field, place);
                     if (!text.empty()) document(text);
                     return !text.empty();
                   });
}

}  // namespace octet::data
