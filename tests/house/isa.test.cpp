#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "octet/base/text.hpp"
#include "tests/house/source_tree.hpp"

// A kernel file is compiled twice, and the linker keeps one copy of every inline function of the same name. If AVX-512 code were in a
// function outside of the namespace v4, that copy could be the one that runs on a machine without AVX-512. So every such (weak) function
// in an object of the v4 kind must carry v4 in its name. An always_inline function leaves none behind.

namespace octet::house {
namespace {

std::vector<std::string> lines_of_command(const std::string& command) {
  std::vector<std::string> lines;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return lines;
  std::string line;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
    if (c == '\n') lines.push_back(std::exchange(line, ""));
    else line.push_back(char(c));
  }
  pclose(pipe);
  return lines;
}

// In `nm --format=posix`: "name type value size". W is a weak function with a body, w one that is only called.
bool may_be_taken_from_another_object(const std::string& line) {
  const std::size_t space = line.find(' ');
  if (space == std::string::npos || line.size() < space + 2 || line[space + 1] != 'W') return false;
  return line.substr(0, space).find("2v4") == std::string::npos;  // a namespace in a mangled name: its length, then itself
}

TEST(Isa, EveryWeakFunctionOfAnAvx512ObjectIsNamedSo) {
  std::ifstream list(OCTET_V4_OBJECTS);
  ASSERT_TRUE(list) << OCTET_V4_OBJECTS;
  std::vector<std::string> violations;
  std::size_t objects = 0;
  for (std::string object; std::getline(list, object);) {
    if (object.empty()) continue;
    const std::vector<std::string> symbols = lines_of_command(format("{} --format=posix \"{}\"", OCTET_NM, object));
    EXPECT_FALSE(symbols.empty()) << object << " has no symbols";
    ++objects;
    for (const std::string& symbol : symbols)
      if (may_be_taken_from_another_object(symbol)) violations.push_back(object + ": " + symbol.substr(0, symbol.find(' ')));
  }
  EXPECT_GT(objects, 0u);
  EXPECT_TRUE(violations.empty()) << "move these into the namespace OCTET_ISA, or make them OCTET_HD:\n" << listed(violations);
}

TEST(Isa, TheCheckSeesWhatItShallSee) {
  EXPECT_TRUE(may_be_taken_from_another_object("_ZNSt6vectorIfSaIfEE9push_backERKf W 0000 10"));
  EXPECT_FALSE(may_be_taken_from_another_object("_ZN5octet3cpu2v43runIfEEvT_ W 0000 10"));
  EXPECT_FALSE(may_be_taken_from_another_object("_ZN5octet3cpu3runEv T 0000 10"));
  EXPECT_FALSE(may_be_taken_from_another_object("_ZTV3Foo V 0000 10"));
}

}  // namespace
}  // namespace octet::house
