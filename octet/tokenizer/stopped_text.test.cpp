#include "octet/tokenizer/stopped_text.hpp"

#include <gtest/gtest.h>

#include "octet/base/error.hpp"

namespace octet::tokenizer {
namespace {

struct Shown {
  std::string text;
  bool stopped;
  friend bool operator==(const Shown&, const Shown&) = default;
};

// All ways to cut a text into pieces of at most `longest` bytes show the same.
Shown shown(const std::string& text, const std::vector<std::string>& stops, std::size_t longest) {
  StoppedText s(stops);
  Shown out{"", false};
  for (std::size_t at = 0; at < text.size(); at += longest) out.text += s.next(std::string_view(text).substr(at, longest));
  out.text += s.finish(), out.stopped = s.stopped();
  return out;
}

TEST(StoppedText, EndsBeforeTheFirstStringHoweverTheTextComes) {
  for (std::size_t longest = 1; longest <= 12; ++longest) {
    EXPECT_EQ(shown("one two three", {"two", "three"}, longest), (Shown{"one ", true})) << longest;
    EXPECT_EQ(shown("one two three", {"three", "e t", "wo t"}, longest), (Shown{"on", true})) << longest;
    EXPECT_EQ(shown("aaab", {"aab"}, longest), (Shown{"a", true})) << longest;
    EXPECT_EQ(shown("one tw", {"two"}, longest), (Shown{"one tw", false})) << longest;
    EXPECT_EQ(shown("one", {}, longest), (Shown{"one", false})) << longest;
  }
}

TEST(StoppedText, KeepsBackOnlyWhatMayBecomeAString) {
  StoppedText s({"\n\nQ"});
  EXPECT_EQ(s.next("a\n"), "a");
  EXPECT_EQ(s.next("b"), "\nb");
  EXPECT_EQ(s.next("\n\n"), "");
  EXPECT_EQ(s.next("R"), "\n\nR");
  EXPECT_THROW(StoppedText({""}), ContractError);
}

}  // namespace
}  // namespace octet::tokenizer
