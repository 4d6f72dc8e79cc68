#include "octet/base/wildcard.hpp"

#include <fnmatch.h>

#include <algorithm>

#include "octet/base/text.hpp"
#include "octet/base/utf8.hpp"
#include "tests/fuzz/input.hpp"

using namespace octet;

namespace {

/// Whether fnmatch(3) means the same by the pattern, and matches it fast. POSIX does not define a backslash in a set and at the end, nor
/// a set without end; glibc matches nothing with one that ends in a range.
bool comparable(std::string_view pattern, std::string_view text) {
  for (const char* classes : {"[:", "[.", "[="})
    if (pattern.find(classes) != pattern.npos) return false;
  if (pattern.ends_with('\\') || (pattern.find('[') != pattern.npos && pattern.find('\\') != pattern.npos)) return false;
  if (pattern.ends_with('-') && pattern.find('[') != pattern.npos) return false;
  const auto plain = [](std::string_view s) { return s.find_first_of(std::string_view("\0/", 2)) == s.npos; };
  return plain(pattern) && plain(text) && pattern.size() <= 32 && text.size() <= 64 && std::count(pattern.begin(), pattern.end(), '*') <= 4;
}

/// At most 4 characters are shown for a byte.
void check_printable(std::string_view text, std::size_t most) {
  const std::string shown = printable(text, most);
  if (shown.size() > 4 * (most + 6) + 3 || valid_utf8_bytes(shown) != shown.size() || printable(shown, shown.size()) != shown)
    __builtin_trap();
}

}  // namespace

// A pattern, whose length is the first byte, and a text; both are text that a message shows.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view all = fuzz::text_of(bytes, size).substr(1);
  const std::string pattern(all.substr(0, bytes[0])), text(all.substr(pattern.size()));
  const bool matches = wildcard_match(pattern, text);
  if (comparable(pattern, text) && matches != (::fnmatch(pattern.c_str(), text.c_str(), 0) == 0)) __builtin_trap();
  check_printable(all, bytes[0]);
  check_printable(all, all.size());
  return 0;
}
