#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace octet::data {

/// JSON lines, one object per line, of which the string `field` is a document. Blank lines are ignored.
struct JsonLines {
  /// Longer lines are refused.
  static constexpr std::size_t most_line_bytes = std::size_t(64) << 20;

  std::string field = "text";
  bool skip_bad = false;  // leave bad lines out and count them, instead of throwing
};

/// The number of lines of each kind.
struct LineCounts {
  std::uint64_t documents = 0, empty = 0, bad = 0;
  void add(const LineCounts& more) { documents += more.documents, empty += more.empty, bad += more.bad; }
};

/// Calls take(line, place) for each line that is not blank, in order; `place` is "<path>:<line>". take() returns whether the line has a
/// document, and throws DataError at a bad line, which then has the advice `hint`, or is left out and counted with `skip_bad`.
LineCounts each_line(bool skip_bad, std::string_view hint, std::string_view lines, const std::string& path, std::uint64_t first_line,
                     const std::function<bool(std::string_view line, const std::string& place)>& take);

/// Calls document(text) for each line of `lines`, in order, whose field is not the empty string. `path` and `first_line` locate them in
/// messages. Throws DataError "<path>:<line>: ..." at a line that is no JSON object, lacks the field or has it twice, or has another
/// type there, unless such lines are skipped.
LineCounts each_document(const JsonLines&, std::string_view lines, const std::string& path, std::uint64_t first_line,
                         const std::function<void(std::string_view text)>& document);

}  // namespace octet::data
