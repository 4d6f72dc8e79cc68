#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "octet/telemetry/run_tail.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::telemetry {
namespace {

class RunTails : public ::testing::Test {
 protected:
  testing::Scratch scratch;
  std::string path = scratch.at("metrics.jsonl");
  RunTail tail{path, Link::refuse, 40};
  std::vector<std::string> lines;
  std::vector<std::int64_t> offsets;

  void append(const std::string& text) { std::ofstream(path, std::ios::app | std::ios::binary) << text; }
  RunTail::Progress poll(std::int64_t most = 1 << 20) {
    lines.clear(), offsets.clear();
    return tail.poll([&](std::string_view line, std::int64_t offset) { lines.emplace_back(line), offsets.push_back(offset); }, most);
  }
  using Lines = std::vector<std::string>;
};

TEST_F(RunTails, ReadOnlyNewLinesAndKeepATornOneForLater) {
  EXPECT_TRUE(poll().at_end);  // not there yet
  append("one\ntw");
  EXPECT_TRUE(poll().at_end);
  EXPECT_EQ(lines, Lines{"one"});
  EXPECT_EQ(tail.offset(), 4);
  append("o\nthree\n");
  poll();
  EXPECT_EQ(lines, (Lines{"two", "three"}));
  EXPECT_EQ(offsets, (std::vector<std::int64_t>{4, 8}));
  poll();
  EXPECT_TRUE(lines.empty());
}

TEST_F(RunTails, BeginAgainWhenAResumeCutsTheFileBack) {
  append("one\ntwo\nthree\n");
  poll();
  std::filesystem::resize_file(path, 4);
  EXPECT_TRUE(poll().restarted);
  EXPECT_TRUE(lines.empty());
  EXPECT_FALSE(poll().restarted);
  EXPECT_EQ(lines, Lines{"one"});
}

TEST_F(RunTails, SeeACutThatGrewPastTheOldEndBetweenTwoLooks) {
  append("one\ntwo\nthree\n");
  poll();
  std::filesystem::resize_file(path, 4);
  append("new two\nnew three\nnew four\n");
  EXPECT_TRUE(poll().restarted);
  poll();
  EXPECT_EQ(lines, (Lines{"one", "new two", "new three", "new four"}));
}

TEST_F(RunTails, ForgetATornLineThatAResumeCutsOff) {
  append("one\ntwo and mo");
  poll();
  std::filesystem::resize_file(path, 4);
  EXPECT_FALSE(poll().restarted);
  append("2, longer than the torn one\n");
  poll();
  EXPECT_EQ(lines, Lines{"2, longer than the torn one"});
}

TEST_F(RunTails, BeginAgainWithAnotherFileOfTheName) {
  append("one\ntwo\n");
  poll();
  std::filesystem::rename(path, scratch.at("before"));
  append("one\ntwo\nlast\n");
  EXPECT_TRUE(poll().restarted);
  poll();
  EXPECT_EQ(lines, (Lines{"one", "two", "last"}));
}

TEST_F(RunTails, CountLinesThatAreTooLongAndReadTheNext) {
  const std::string overlong(2 << 20, 'x');
  append(overlong);
  append("\nshort\n");
  std::int64_t skipped = 0;
  Lines all;
  for (int i = 0; i < 4; ++i) {  // a call reads more than a block at least
    skipped += poll(1).skipped;
    all.insert(all.end(), lines.begin(), lines.end());
  }
  EXPECT_EQ(skipped, 1);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0], "short");
  EXPECT_EQ(tail.offset(), tail.size());
}

TEST_F(RunTails, SamplesAreCompleteLinesInTheirOrder) {
  for (int i = 0; i < 1000; ++i) append("line " + std::to_string(1000 + i) + "\n");
  sample_lines(path, 10, 64, [&](std::string_view line, std::int64_t) { lines.emplace_back(line); });
  EXPECT_GE(lines.size(), 30u);
  EXPECT_LE(lines.size(), 70u);
  EXPECT_TRUE(std::is_sorted(lines.begin(), lines.end()));
  for (const auto& line : lines) EXPECT_EQ(line.size(), 9u) << line;
  EXPECT_EQ(lines.front(), "line 1000");
  EXPECT_EQ(lines.back(), "line 1999");
}

}  // namespace
}  // namespace octet::telemetry
