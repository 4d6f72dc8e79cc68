#include <gtest/gtest.h>

#include "tests/house/source_tree.hpp"

// Habits that a reader relies on, whatever the language of the file.

namespace octet::house {
namespace {

constexpr std::size_t most_lines = 500;

bool has_word(std::string_view text, std::string_view word) {
  const auto letter = [&](std::size_t i) {
    return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_');
  };
  for (std::size_t i = text.find(word); i != text.npos; i = text.find(word, i + 1))
    if (!(i > 0 && letter(i - 1)) && !letter(i + word.size())) return true;
  return false;
}

// A folder of one person's machine at the start of a path. The words stand in two halves so that this file does not find itself.
bool has_machine_path(std::string_view line) {
  for (const std::string_view folder : {"/"
                                        "home/",
                                        "/"
                                        "root/",
                                        "/"
                                        "work/",
                                        "/"
                                        "Users/",
                                        "/"
                                        "mnt/"})
    for (std::size_t i = line.find(folder); i != line.npos; i = line.find(folder, i + 1)) {
      const char before = i == 0 ? ' ' : line[i - 1];
      if (!std::isalnum(static_cast<unsigned char>(before)) && std::string_view("}/._-*)").find(before) == std::string_view::npos)
        return true;
    }
  return false;
}

TEST(Text, NoSourceFileIsLongerThanFiveHundredLines) {
  std::vector<std::string> violations;
  for (const SourceFile& file : source_tree())
    if (file.is_code() && file.lines.size() > most_lines)
      violations.push_back(file.path + ": " + std::to_string(file.lines.size()) + " lines");
  EXPECT_TRUE(violations.empty()) << listed(violations);
}

TEST(Text, NothingIsLeftForLater) {
  std::vector<std::string> violations;
  for (const SourceFile& file : source_tree())
    for (std::size_t i = 0; i < file.lines.size(); ++i)
      for (const std::string_view mark : {"TO"
                                          "DO",
                                          "FIX"
                                          "ME",
                                          "XX"
                                          "X"})
        if (has_word(file.lines[i], mark)) violations.push_back(at_line(file, i, mark));
  EXPECT_TRUE(violations.empty()) << listed(violations);
}

TEST(Text, NoFileNamesAFolderOfOneMachine) {
  std::vector<std::string> violations;
  for (const SourceFile& file : source_tree())
    for (std::size_t i = 0; i < file.lines.size(); ++i)
      if (has_machine_path(file.lines[i])) violations.push_back(at_line(file, i, file.lines[i]));
  EXPECT_TRUE(violations.empty()) << listed(violations);
}

TEST(Text, EveryHeaderIsIncludedOnce) {
  std::vector<std::string> violations;
  for (const SourceFile& file : source_tree()) {
    if (!file.path.ends_with(".hpp") && !file.path.ends_with(".cuh")) continue;
    if (file.lines.empty() || file.lines[0] != "#pragma once") violations.push_back(file.path + ": begins without #pragma once");
  }
  EXPECT_TRUE(violations.empty()) << listed(violations);
}

TEST(Text, TheChecksSeeWhatTheyShallSee) {
  EXPECT_TRUE(
      has_word("// TO"
               "DO: later",
               "TO"
               "DO"));
  EXPECT_FALSE(
      has_word("METO"
               "DOS",
               "TO"
               "DO"));
  EXPECT_TRUE(
      has_machine_path("root = \"/"
                       "home/someone/x\""));
  EXPECT_FALSE(
      has_machine_path("docs/"
                       "work/page.md"));
  EXPECT_EQ(split_comment("a = \"http://x\";  // why").comment, " why");
  EXPECT_EQ(split_comment("a = 1'000; // b").code, "a = 1'000; ");
}

}  // namespace
}  // namespace octet::house
