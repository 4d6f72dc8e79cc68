#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "tests/bad_input/case.hpp"
#include "tests/testing/octet.hpp"

// Whatever is put before the program, it answers with one line (what, where, the remedy) and an exit code of docs/errors.md, within a
// second and 256 MiB.

namespace octet::bad_input {

void PrintTo(const Case& c, std::ostream* out) { *out << "octet " << c.line; }

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double most_seconds = 60, most_bytes = 64e9;  // a sanitizer's program is another program
#else
constexpr double most_seconds = 1, most_bytes = 256.0 * (1 << 20);
#endif

std::vector<Case> all_cases() {
  return all_of({command_lines(), configurations(), token_folders(), tokenizers(), weight_files(), model_folders(), coded_folders(),
                 adapter_folders(), checkpoints(), run_folders(), foreign_folders(), studies(), surroundings()});
}

class BadInput : public ::testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() { world = std::make_unique<World>(); }
  static void TearDownTestSuite() { world.reset(); }
  static std::unique_ptr<World> world;
};
std::unique_ptr<World> BadInput::world;

INSTANTIATE_TEST_SUITE_P(Table, BadInput, ::testing::ValuesIn(all_cases()), [](const auto& info) { return info.param.name; });

const std::string other_user = "setpriv --reuid=65534 --regid=65534 --clear-groups ";

/// Whether a process without root's rights can be begun, and reaches the program.
bool other_user_can_run() {
  if (::geteuid() != 0) return true;
  static const bool can = std::system((other_user + "test -x " OCTET_PROGRAM " 2>/dev/null").c_str()) == 0;
  return can;
}

testing::Ended run(const Case& c, const std::string& folder) {
  if (c.shell == "octet" && !c.as_other_user) return testing::run_octet(c.line, folder, 30);
  std::vector<std::string> words{"/bin/bash", "-c",
                                 "octet() { " + std::string(c.as_other_user && ::geteuid() == 0 ? other_user : "") +
                                     "\"$0\" \"${words[@]}\"; }; words=(\"$@\"); " + c.shell,
                                 OCTET_PROGRAM};
  for (const std::string& word : testing::words_of(c.line)) words.push_back(word);
  return testing::run_child(words, folder, 30);
}

TEST_P(BadInput, IsRefusedInOneLineThatSaysWhatAndWhereAndWhatToDo) {
  const Case& c = GetParam();
  const Place place(*world);
  if (c.prepare) c.prepare(place);
  if (c.as_other_user && !other_user_can_run()) GTEST_SKIP() << "no other user can run the program";
  const testing::Ended ended = run(c, place.folder());
  EXPECT_EQ(ended.code, int(c.code)) << ended.err;
  ASSERT_TRUE(ended.err.starts_with("octet: ") && ended.err.ends_with("\n") && std::count(ended.err.begin(), ended.err.end(), '\n') == 1)
      << "must print one line, printed\n"
      << ended.err;
  EXPECT_TRUE(std::none_of(ended.err.begin(), ended.err.end() - 1, [](char b) {
    return static_cast<unsigned char>(b) < 0x20 || b == 0x7F;
  })) << ended.err;
  EXPECT_LE(ended.err.size(), 1000u) << ended.err;
  EXPECT_EQ(ended.out, "");
  for (const std::string& part : c.says) EXPECT_TRUE(testing::has(ended.err, part)) << "lacks \"" << part << "\" in\n" << ended.err;
  EXPECT_LE(ended.peak_bytes, most_bytes);
  // Where the machine does other work too, the clock shows that; a program that waits would show in the clock alone.
  EXPECT_LE(std::min(ended.seconds, ended.processor_seconds), most_seconds);
  EXPECT_LE(ended.seconds, 10 * most_seconds);
  RecordProperty("seconds", std::to_string(ended.seconds));
  RecordProperty("peak_MiB", std::to_string(ended.peak_bytes / (1 << 20)));
}

TEST(BadInputTable, HasItsCasesOnce) {
  const std::vector<Case> all = all_cases();
  EXPECT_GE(all.size(), 320u);
  std::set<std::string> names;
  for (const Case& c : all) {
    EXPECT_TRUE(names.insert(c.name).second) << c.name << " stands twice";
    EXPECT_GE(c.says.size(), 2u) << c.name << ": a place and a remedy";
  }
}

}  // namespace
}  // namespace octet::bad_input
