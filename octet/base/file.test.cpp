#include "octet/base/file.hpp"

#include <gtest/gtest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "octet/base/error.hpp"
#include "tests/testing/scratch.hpp"

namespace octet {
namespace {
namespace fs = std::filesystem;
using testing::error_of;

struct File : ::testing::Test, testing::Scratch {};

TEST_F(File, WhatIsWrittenIsReadBackWithEveryByte) {
  std::string bytes;
  for (int i = 0; i < 300'000; ++i) bytes += char(i * 7 + i / 256);
  for (const auto& text : {std::string(), std::string("a\0b\r\n", 5), bytes}) {
    write_file(at("x"), text);
    EXPECT_EQ(read_file(at("x"), 1 << 20), text);
  }
  EXPECT_EQ(entries(), 1u) << "a temporary file was left behind";
}

TEST_F(File, AFileOfExactlyTheLimitIsReadAndOneByteMoreIsRefused) {
  write_file(at("x"), std::string(2048, 'x'));
  EXPECT_EQ(read_file(at("x"), 2048).size(), 2048u);
  EXPECT_EQ(error_of<DataError>([&] { read_file(at("x"), 2047); }), at("x") + ": the file may have at most 2,047 bytes, it has 2,048");
  EXPECT_EQ(error_of<DataError>([&] { read_file(at("x"), 0); }), at("x") + ": the file may have at most 0 bytes, it has 2,048");
}

TEST_F(File, WhatIsNoRegularFileIsRefusedAndNeverWaitedFor) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of<DataError>([&] { read_file(at("pipe"), 10); }), at("pipe") + ": is a pipe, not a regular file");
  EXPECT_EQ(error_of<DataError>([&] { read_file("/dev/zero", 10); }), "/dev/zero: is a device, not a regular file");
  EXPECT_EQ(error_of<IoError>([&] { read_file(folder(), 10); }),
            "cannot read '" + folder() + "': Is a directory; it is a folder, name a file");
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  at("socket").copy(name.sun_path, sizeof name.sun_path - 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  EXPECT_EQ(error_of<DataError>([&] { read_file(at("socket"), 10); }), at("socket") + ": is a socket, not a regular file");
  ::close(socket);
}

TEST_F(File, APipeAndADeviceAreWrittenInPlace) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  const std::string text(200'000, 'y');
  std::string read;
  {
    std::jthread reader([&] { read = testing::bytes_of(at("pipe")); });
    write_file(at("pipe"), text);
  }
  EXPECT_EQ(read, text);
  EXPECT_TRUE(fs::is_fifo(at("pipe")));
  fs::create_symlink("/dev/full", at("full"));
  EXPECT_EQ(error_of<IoError>([&] { write_file(at("full"), "a"); }),
            "cannot write '/dev/full': No space left on device; free some space or choose another place");
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(File, LinksAreKeptAndWhatIsBehindThemIsWritten) {
  fs::create_directory(at("real"));
  fs::create_symlink("real/x", at("one"));
  fs::create_symlink("one", at("two"));
  for (const char* text : {"new", "newer"}) {
    write_file(at("two"), text);
    EXPECT_EQ(testing::bytes_of(at("real/x")), text);
  }
  EXPECT_TRUE(fs::is_symlink(at("one")) && fs::is_symlink(at("two")));
  fs::create_symlink("b", at("a")), fs::create_symlink("a", at("b"));
  EXPECT_TRUE(testing::has(error_of<IoError>([&] { write_file(at("a"), "x"); }), "links lead in a circle"));
  EXPECT_TRUE(testing::has(error_of<IoError>([&] { read_file(at("a"), 10); }), "links lead in a circle"));
}

TEST_F(File, AnOwnFileIsARegularOneBehindNoLink) {
  write_own_file(at("x"), "old");
  write_own_file(at("x"), "new");
  EXPECT_EQ(testing::bytes_of(at("x")), "new");
  fs::create_symlink("x", at("link")), fs::create_symlink("none", at("dangling"));
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  for (const char* name : {"link", "dangling"}) {
    const std::string message = at(name) + ": a symbolic link is not followed here; put the file itself in its place";
    EXPECT_EQ(error_of<DataError>([&] { write_own_file(at(name), "changed"); }), message);
    EXPECT_EQ(error_of<DataError>([&] { open_own_file(at(name), O_RDWR | O_CREAT | O_TRUNC, "open"); }), message);
    EXPECT_EQ(error_of<DataError>([&] { read_file(at(name), 10, Link::refuse); }), message);
  }
  EXPECT_EQ(error_of<DataError>([&] { write_own_file(at("pipe"), "changed"); }), at("pipe") + ": is a pipe, not a regular file");
  EXPECT_EQ(error_of<DataError>([&] { open_own_file(at("pipe"), O_RDWR, "open"); }), at("pipe") + ": is a pipe, not a regular file");
  EXPECT_EQ(testing::bytes_of(at("x")), "new");
  EXPECT_FALSE(fs::exists(at("none")));
}

TEST_F(File, AMissingFileSaysThePathAndTheReason) {
  EXPECT_EQ(error_of<IoError>([&] { read_file(at("no\nfile"), 10); }),
            "cannot read '" + at("no\\x0afile") + "': No such file or directory; check the path");
}

TEST_F(File, ARefusedWriteSaysWhyAndLeavesNothing) {
  EXPECT_EQ(error_of<IoError>([&] { write_file(at("no/x"), "a"); }),
            "cannot write '" + at("no/x") + "': No such file or directory; check the path");
  fs::create_directories(at("taken/inside"));
  EXPECT_EQ(error_of<IoError>([&] { write_file(at("taken"), "a"); }),
            "cannot write '" + at("taken") + "': Is a directory; it is a folder, name a file");
  EXPECT_EQ(entries(), 1u) << "a temporary file was left behind";
}

TEST_F(File, AReaderBesideAWriterSeesOldOrNewNeverHalf) {
  const std::string even(100'000, 'e'), odd(120'000, 'o');
  write_file(at("x"), even);
  std::jthread writer([&] {
    for (int i = 0; i < 20; ++i) write_file(at("x"), i % 2 ? even : odd);
  });
  for (int i = 0; i < 200; ++i) {
    const std::string seen = read_file(at("x"), 1 << 20);
    ASSERT_TRUE(seen == even || seen == odd);
  }
}

TEST_F(File, ANameInTheCurrentFolderNeedsNoSlash) {
  const fs::path before = fs::current_path();
  fs::current_path(folder());
  write_file("plain", "text");
  fs::current_path(before);
  EXPECT_EQ(read_file(at("plain"), 100), "text");
}

}  // namespace
}  // namespace octet
