#include <gtest/gtest.h>

#include <regex>

#include "tests/house/source_tree.hpp"

// A test is named TEST(Subject, SentenceAboutIt): what is tested, and a sentence that is true when it passes. GoogleTest forbids
// underscores in both, since it joins names by them. Parameters of a suite are no sentence and may be any word.

namespace octet::house {
namespace {

// Folders whose tests are still named otherwise.
constexpr std::string_view exempt[] = {"octet/train/", "octet/telemetry/", "octet/io/"};

// The subjects and sentences of a file that are not written like this, "path:12: name".
std::vector<std::string> ill_named(const SourceFile& file) {
  static const std::regex macro(R"(^\s*(?:TYPED_)?TEST(?:_F|_P)?\((.*))"), names(R"(^\s*(\w+)\s*,\s*(\w+)\s*\).*)");
  static const std::regex form("[A-Z][A-Za-z0-9]*");
  std::vector<std::string> out;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    std::smatch begun, found;
    if (!std::regex_match(file.lines[i], begun, macro)) continue;
    std::string arguments = begun[1];
    for (std::size_t next = i + 1; arguments.find(')') == std::string::npos && next < file.lines.size(); ++next)
      arguments += " " + file.lines[next];
    if (!std::regex_match(arguments, found, names)) out.push_back(at_line(file, i, "not TEST(Subject, SentenceAboutIt)"));
    else
      for (const std::string name : {found[1], found[2]})
        if (!std::regex_match(name, form)) out.push_back(at_line(file, i, name + ": write it in CamelCase, without underscores"));
  }
  return out;
}

TEST(TestNames, AreASubjectAndASentenceInCamelCase) {
  std::vector<std::string> violations;
  for (const SourceFile& file : source_tree()) {
    if (!file.path.ends_with(".test.cpp")) continue;
    if (std::any_of(std::begin(exempt), std::end(exempt), [&](std::string_view folder) { return file.is_below(folder); })) continue;
    const auto found = ill_named(file);
    violations.insert(violations.end(), found.begin(), found.end());
  }
  EXPECT_TRUE(violations.empty()) << listed(violations);
}

TEST(TestNames, TheCheckSeesWhatItShallSee) {
  const auto count = [](std::vector<std::string> lines) { return ill_named({"a.test.cpp", std::move(lines)}).size(); };
  const std::string macro = "TEST";  // so that this file's lines are no tests
  EXPECT_EQ(count({macro + "(Scale, OfZeroIsOne) {"}), 0u);
  EXPECT_EQ(count({macro + "_F(File, KeepsE4m3) { EXPECT_EQ(f(1), 2); }"}), 0u);
  EXPECT_EQ(count({macro + "(Scale, of_zero_is_one) {"}), 1u);
  EXPECT_EQ(count({macro + "(Scale, OfZero_IsOne) {"}), 1u);
  EXPECT_EQ(count({macro + "(scale, ofZeroIsOne) {"}), 2u);
  EXPECT_EQ(count({"TYPED_" + macro + "(Scale,", "    of_zero) {"}), 1u);
  EXPECT_EQ(count({macro + "_P(Scale, DISABLED_OfZero) {"}), 1u);
  EXPECT_EQ(count({"  " + macro + "_SUITE(Scale, any_thing);"}), 0u);
}

}  // namespace
}  // namespace octet::house
