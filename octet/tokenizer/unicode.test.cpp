#include "octet/tokenizer/unicode.hpp"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdlib>
#include <random>

#include "octet/tokenizer/unicode_form.hpp"

namespace octet::tokenizer {
namespace {

TEST(Unicode, InvalidSequencesAreReplacedAsPythonDoes) {
  // Python: bytes.decode("utf-8", errors="replace")
  const std::vector<std::pair<std::string, std::string>> table = {{"a\xff"
                                                                   "b",
                                                                   "a?b"},
                                                                  {"\xc3", "?"},
                                                                  {"\xe2\x82", "?"},
                                                                  {"\xe2\x82"
                                                                   "a",
                                                                   "?a"},
                                                                  {"\xf0\x9f\x98", "?"},
                                                                  {"\xed\xa0\x80", "???"},
                                                                  {"\xc0\xaf", "??"},
                                                                  {"\xf4\x90\x80\x80", "????"},
                                                                  {"\x80\x80", "??"},
                                                                  {"\xf0\x80\x80", "???"},
                                                                  {"\xe0\x80\x80", "???"},
                                                                  {"\xf0\x9f\x98\xc3\xa9", "?\u00e9"},
                                                                  {"\xf5\x80", "??"},
                                                                  {"12345678\xff"
                                                                   "12345678",
                                                                   "12345678?12345678"}};
  for (const auto& [bytes, pattern] : table) {
    std::string wanted, storage;
    for (const char c : pattern) c == '?' ? void(wanted += "\uFFFD") : wanted.push_back(c);
    std::size_t replaced = 0;
    EXPECT_EQ(well_formed(bytes, storage, replaced), wanted) << pattern;
    EXPECT_EQ(replaced, std::size_t(std::count(pattern.begin(), pattern.end(), '?')));
  }
}

TEST(Unicode, WellFormedTextIsNotCopied) {
  const std::string text = "plain text, \u00e9\u4e2d\U0001f600 and more of it";
  std::string storage;
  std::size_t replaced = 7;
  EXPECT_EQ(well_formed(text, storage, replaced).data(), text.data());
  EXPECT_EQ(replaced, 0u);
}

TEST(Unicode, CharactersAtBothEndsAreThoseThatWereWritten) {
  for (const char32_t code : {0x0u, 0x7Fu, 0x80u, 0x7FFu, 0x800u, 0xFFFFu, 0x10000u, 0x10FFFFu}) {
    std::string text;
    append_utf8(text, code);
    EXPECT_EQ(first_character(text + "x").code, code);
    EXPECT_EQ(last_character("x" + text).code, code);
    EXPECT_EQ(first_character(text + "x").bytes, text.size());
  }
}

/// utf8proc's own function for a whole text.
std::string reference(const std::string& text, Form form) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.c_str());
  utf8proc_uint8_t* out = form == Form::nfc    ? utf8proc_NFC(bytes)
                          : form == Form::nfd  ? utf8proc_NFD(bytes)
                          : form == Form::nfkc ? utf8proc_NFKC(bytes)
                                               : utf8proc_NFKD(bytes);
  std::string result(reinterpret_cast<const char*>(out));
  std::free(out);
  return result;
}

TEST(UnicodeForm, PartsThatAreConvertedAloneGiveTheWholeTextsForm) {
  std::mt19937 random(5);
  const std::vector<std::pair<unsigned, unsigned>> ranges = {
      {0x20, 0x7E},     {0xA0, 0x24F},    {0x300, 0x36F},   {0x370, 0x5FF},   {0x900, 0xDFF},     {0x1100, 0x11FF},  {0x1E00, 0x1FFF},
      {0x3040, 0x30FF}, {0xAC00, 0xAC20}, {0xF900, 0xFAFF}, {0xFB00, 0xFFEE}, {0x1D15E, 0x1D1BB}, {0x2F800, 0x2F80F}};
  for (const Form form : {Form::nfc, Form::nfd, Form::nfkc, Form::nfkd}) {
    const UnicodeForm forms(form);
    for (int trial = 0; trial < 3000; ++trial) {
      std::string text;
      for (unsigned i = random() % 20; i > 0; --i) {
        const auto [first, last] = ranges[random() % ranges.size()];
        append_utf8(text, first + random() % (last - first + 1));
      }
      std::string got = text;
      forms.apply(got);
      ASSERT_EQ(got, reference(text, form)) << text;
    }
  }
}

TEST(UnicodeForm, ManyMarksAreSortedWithoutQuadraticTime) {
  std::string text = "a";
  for (int i = 0; i < 200'000; ++i) text += i % 2 == 0 ? "\u0301" : "\u0323";
  UnicodeForm(Form::nfd).apply(text);
  EXPECT_TRUE(text.starts_with("a\u0323\u0323"));
  EXPECT_TRUE(text.ends_with("\u0301\u0301"));
}

}  // namespace
}  // namespace octet::tokenizer
