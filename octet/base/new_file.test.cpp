#include "octet/base/new_file.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "octet/base/error.hpp"
#include "octet/base/file.hpp"
#include "tests/testing/scratch.hpp"
#include "tests/testing/small_files.hpp"

namespace octet {
namespace {
namespace fs = std::filesystem;
using testing::error_of;

struct NewFileTest : ::testing::Test, testing::Scratch {};

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST_F(NewFileTest, PartsWrittenInAnyOrderAppearTogetherWhenPublished) {
  write_file(at("x"), "old");
  NewFile file(at("x"), 8);
  file.write(5, bytes("fgh"));
  file.write(0, bytes("abc"));
  file.sync();
  EXPECT_EQ(read_file(at("x"), 100), "old");
  file.publish();
  EXPECT_EQ(read_file(at("x"), 100), std::string("abc\0\0fgh", 8)) << "bytes never written are 0";
  EXPECT_EQ(entries(), 1u);
}

TEST_F(NewFileTest, AFileNeverPublishedLeavesNothingAndAMovedOneGoesOnce) {
  {
    NewFile file(at("x"), 3);
    file.write(0, bytes("abc"));
    NewFile moved(std::move(file));
    EXPECT_EQ(entries(), 1u);
  }
  EXPECT_EQ(entries(), 0u);
}

TEST_F(NewFileTest, WritingBeyondTheEndOrAfterSyncOrPublishingTwiceIsTheCallersFault) {
  NewFile file(at("x"), 3);
  EXPECT_NE(error_of<ContractError>([&] { file.write(1, bytes("abc")); }).find("has 3 bytes, wrote 3 at 1"), std::string::npos);
  EXPECT_NE(error_of<ContractError>([&] { file.write(~std::uint64_t(0), bytes("a")); }), "no error");
  file.publish();
  EXPECT_NE(error_of<ContractError>([&] { file.write(0, bytes("abc")); }).find("is written already"), std::string::npos);
  EXPECT_NE(error_of<ContractError>([&] { file.publish(); }).find("published or given up already"), std::string::npos);
}

TEST_F(NewFileTest, ASizeTheSystemRefusesIsToldBeforeAnythingIsWritten) {
  const std::string message = error_of<IoError>([&] {
    const testing::SmallFiles small(4096);
    NewFile(at("x"), 8192);
  });
  EXPECT_EQ(message, "cannot write '" + at("x") + "': File too large; raise the limit of file sizes (ulimit -f)");
  EXPECT_EQ(entries(), 0u);
}

TEST_F(NewFileTest, WhatKilledProcessesLeftIsRemovedAndNothingElse) {
  for (const char* name : {".octet-12-0.tmp", ".octet-x.tmp", "octet-12-0.tmp", "weights.octet-7.tmp/model", "weights/model", "run.json"})
    write(name, "x");
  remove_abandoned(folder());
  for (const char* name : {".octet-x.tmp", "octet-12-0.tmp", "weights/model", "run.json"}) EXPECT_TRUE(fs::exists(at(name))) << name;
  EXPECT_EQ(entries(), 4u);
  remove_abandoned(at("nowhere"));
}

}  // namespace
}  // namespace octet
