#include "octet/base/folder.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "tests/testing/scratch.hpp"

namespace octet {
namespace {
namespace fs = std::filesystem;

TEST(Folder, TheFolderOfAPathIsWhatStandsBeforeItsLastPart) {
  EXPECT_EQ(folder_of("a/b/c"), "a/b");
  EXPECT_EQ(folder_of("c"), ".");
  EXPECT_EQ(folder_of("/c"), "/");
}

TEST(Folder, MissingPartsAreMadeAndOthersLeft) {
  const testing::Scratch scratch;
  EXPECT_EQ(make_folders(scratch.at("a/b/c")), 0);
  EXPECT_TRUE(fs::is_directory(scratch.at("a/b/c")));
  EXPECT_EQ(make_folders(scratch.at("a/b//d/")), 0);
  EXPECT_TRUE(fs::is_directory(scratch.at("a/b/d")));
  EXPECT_EQ(make_folders(scratch.at("a/b/c")), 0);
  EXPECT_EQ(make_folder(scratch.at("a/b/c")), EEXIST);
  EXPECT_EQ(make_folder(scratch.at("none/b")), ENOENT);
}

TEST(Folder, WhatIsNoFolderIsInTheWay) {
  const testing::Scratch scratch;
  const std::string file = scratch.write("file", "x");
  EXPECT_EQ(make_folders(file), ENOTDIR);
  EXPECT_EQ(make_folders(file + "/a/b"), ENOTDIR);
  EXPECT_EQ(make_folder(file), EEXIST);
}

}  // namespace
}  // namespace octet
