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
        if (const char32_t c = first + random() % (last - first + 1); !is_newer_than_forms(c)) append_utf8(text, c);
      }
      std::string got = text;
      forms.apply(got);
      ASSERT_EQ(got, reference(text, form)) << text;
    }
  }
}

/// Of PyPI `tokenizers` 0.23.3; each text has another form in Unicode 14.
TEST(UnicodeForm, CharactersAfterUnicode9StayAsThePackageLeavesThem) {
  struct Row {
    Form form;
    std::u32string_view text, wanted;
  };
  constexpr Row rows[] = {
      {Form::nfc, U"\U00001E69\U00001ABF\U00000061\U00010781\U0000006F\U00000898\U00000323\U0000AC00\U00011930",
       U"\U00001E69\U00001ABF\U00000061\U00010781\U0000006F\U00000898\U00000323\U0000AC00\U00011930"},
      {Form::nfc, U"\U00001DF6\U00000C3C\U0000006F\U00011935\U00000041\U00000327\U00011930\U00000345\U00011935",
       U"\U00001DF6\U00000C3C\U0000006F\U00011935\U00000041\U00000327\U00011930\U00000345\U00011935"},
      {Form::nfc, U"\U00000898\U000007FD\U00000065\U000011A8\U00001DF6\U00000041\U00000061\U00001AC3\U00000327",
       U"\U00000898\U000007FD\U00000065\U000011A8\U00001DF6\U00000041\U00000061\U00001AC3\U00000327"},
      {Form::nfc, U"\U000008CA\U000007FD\U000011A8\U00000327\U00011935\U000008CA\U00000301\U00000898\U0000AB69",
       U"\U000008CA\U000007FD\U000011A8\U00000327\U00011935\U000008CA\U00000301\U00000898\U0000AB69"},
      {Form::nfc, U"\U00001E69\U00011935\U000007FD\U000000E9\U000009FE\U00010781\U000008CA\U00010F46\U00000898",
       U"\U00001E69\U00011935\U000007FD\U000000E9\U000009FE\U00010781\U000008CA\U00010F46\U00000898"},
      {Form::nfd, U"\U0000AB69\U000011A8\U00001DF6\U0000006F\U00000316\U000032FF\U00001E69\U00010F46\U00010D24",
       U"\U0000AB69\U000011A8\U00001DF6\U0000006F\U00000316\U000032FF\U00000073\U00000323\U00000307\U00010F46\U00010D24"},
      {Form::nfd, U"\U00001ABF\U00001ABF\U00000301\U00000898\U00011935\U000007FD\U00001E69\U00011938\U00000301",
       U"\U00001ABF\U00001ABF\U00000301\U00000898\U00011935\U000007FD\U00000073\U00000323\U00000307\U00011938\U00000301"},
      {Form::nfd, U"\U00000334\U0000006F\U00000301\U00011935\U00000323\U00000345\U000011A8\U00000898\U00000C3C",
       U"\U00000334\U0000006F\U00000301\U00011935\U00000323\U00000345\U000011A8\U00000898\U00000C3C"},
      {Form::nfd, U"\U000008CA\U00001DF6\U00000327\U00010781\U00011935\U0000AB69\U00000345\U00000061\U00011930",
       U"\U000008CA\U00001DF6\U00000327\U00010781\U00011935\U0000AB69\U00000345\U00000061\U00011930"},
      {Form::nfd, U"\U0000FB01\U0000006F\U00000334\U00001DF6\U00000041\U00011938\U000011A8\U00000065\U00000061",
       U"\U0000FB01\U0000006F\U00000334\U00001DF6\U00000041\U00011938\U000011A8\U00000065\U00000061"},
      {Form::nfkc, U"\U0000AC00\U00011938\U00000065\U0000006F\U00011930\U0000006F\U00000898\U00000323\U000007FD",
       U"\U0000AC00\U00011938\U00000065\U0000006F\U00011930\U0000006F\U00000898\U00000323\U000007FD"},
      {Form::nfkc, U"\U000011A8\U000011A8\U000008CA\U0001193E\U00010781\U00011935\U00000301\U0001E130\U0000AC00",
       U"\U000011A8\U000011A8\U000008CA\U0001193E\U00010781\U00011935\U00000301\U0001E130\U0000AC00"},
      {Form::nfkc, U"\U00000327\U00000041\U000009FE\U000008CA\U00000061\U0000FB01\U000008CA\U00010D24\U00000327",
       U"\U00000327\U00000041\U000009FE\U000008CA\U00000061\U00000066\U00000069\U000008CA\U00010D24\U00000327"},
      {Form::nfkc, U"\U00010D24\U00000061\U0000FB01\U00000065\U000011A8\U00000316\U00000345\U00000898\U00001E69",
       U"\U00010D24\U00000061\U00000066\U00000069\U00000065\U000011A8\U00000316\U00000345\U00000898\U00001E69"},
      {Form::nfkc, U"\U00011935\U00000334\U00000041\U00010781\U0001193E\U00001E69\U00011935\U0000006F\U00010781",
       U"\U00011935\U00000334\U00000041\U00010781\U0001193E\U00001E69\U00011935\U0000006F\U00010781"},
      {Form::nfkd, U"\U0000AC00\U00000323\U00000898\U00001ABF\U000007FD\U0001E130\U00000301\U0000006F\U00010781",
       U"\U00001100\U00001161\U00000323\U00000898\U00001ABF\U000007FD\U0001E130\U00000301\U0000006F\U00010781"},
      {Form::nfkd, U"\U00011935\U0000AB69\U0000006F\U0000AB69\U00000316\U000000E9\U0000FB01\U0000AC00\U00000334",
       U"\U00011935\U0000AB69\U0000006F\U0000AB69\U00000316\U00000065\U00000301\U00000066\U00000069\U00001100\U00001161\U00000334"},
      {Form::nfkd, U"\U00000327\U000007FD\U000000E9\U00000C3C\U000009FE\U00011935\U00011935\U0000FB01\U0000FB01",
       U"\U00000327\U000007FD\U00000065\U00000301\U00000C3C\U000009FE\U00011935\U00011935\U00000066\U00000069\U00000066\U00000069"},
      {Form::nfkd, U"\U00001E69\U00000327\U000032FF\U00000323\U00000061\U000007FD\U0001FBF3\U00011930\U0000006F",
       U"\U00000073\U00000327\U00000323\U00000307\U000032FF\U00000323\U00000061\U000007FD\U0001FBF3\U00011930\U0000006F"},
      {Form::nfkd, U"\U00000C3C\U000011A8\U00000316\U00000C3C\U00001E69\U00000065\U00001E69\U00001ABF\U00000041",
       U"\U00000C3C\U000011A8\U00000316\U00000C3C\U00000073\U00000323\U00000307\U00000065\U00000073\U00000323\U00000307\U00001ABF"
       U"\U00000041"},
  };
  const auto utf8 = [](std::u32string_view text) {
    std::string out;
    for (const char32_t c : text) append_utf8(out, c);
    return out;
  };
  for (const Row& row : rows) {
    std::string got = utf8(row.text);
    UnicodeForm(row.form).apply(got);
    EXPECT_EQ(got, utf8(row.wanted)) << utf8(row.text);
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
