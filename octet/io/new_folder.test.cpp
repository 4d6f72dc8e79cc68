#include "octet/io/new_folder.hpp"

#include "octet/base/error.hpp"
#include "octet/base/file.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::io {
namespace {
using testing::error_of, testing::has, testing::Scratch;

void fill(const NewFolder& folder, const char* name) { write_file(folder.working() + "/" + name, name); }

TEST(NewFolder, StandsUnderItsNameOnlyAfterCommitAndLeavesNothingOtherwise) {
  const Scratch scratch;
  {
    NewFolder folder(scratch.at("a/b"));
    fill(folder, "x");
    EXPECT_FALSE(std::filesystem::exists(scratch.at("a/b")));
    folder.commit();
    EXPECT_EQ(read_file(scratch.at("a/b/x"), 10), "x");
  }
  {
    NewFolder given_up(scratch.at("c"));
    fill(given_up, "x");
  }
  EXPECT_EQ(scratch.entries(), 1u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.at("a")), std::filesystem::directory_iterator()), 1);
}

TEST(NewFolder, ReplacesAFolderAsAWhole) {
  const Scratch scratch;
  for (const char* name : {"old", "new"}) {
    NewFolder folder(scratch.at("f") + "/");
    fill(folder, name);
    EXPECT_EQ(std::filesystem::exists(scratch.at("f/old")), name[0] == 'n');
    folder.commit();
  }
  EXPECT_FALSE(std::filesystem::exists(scratch.at("f/old")));
  EXPECT_EQ(read_file(scratch.at("f/new"), 10), "new");
  EXPECT_EQ(scratch.entries(), 1u);
}

TEST(NewFolder, ReplacesTheFolderBehindALink) {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.at("real"));
  std::filesystem::create_directory_symlink("real", scratch.at("link"));
  NewFolder folder(scratch.at("link"));
  fill(folder, "x");
  folder.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(scratch.at("link")));
  EXPECT_EQ(read_file(scratch.at("real/x"), 10), "x");
}

TEST(NewFolder, RefusesTheNameOfAFileAndNoName) {
  const Scratch scratch;
  write_file(scratch.at("f"), "x");
  EXPECT_TRUE(has(error_of<IoError>([&] { NewFolder folder(scratch.at("f")); }), "cannot make the folder"));
  EXPECT_TRUE(has(error_of<IoError>([&] { NewFolder folder(scratch.at("f/g")); }), "cannot make the folder"));
  EXPECT_TRUE(has(error_of<IoError>([&] { NewFolder folder(""); }), "cannot make the folder"));
}

}  // namespace
}  // namespace octet::io
