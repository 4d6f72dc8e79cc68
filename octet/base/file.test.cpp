#include "octet/base/file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
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

TEST_F(File, what_is_written_is_read_back_with_every_byte) {
  std::string bytes;
  for (int i = 0; i < 300'000; ++i) bytes += char(i * 7 + i / 256);
  for (const auto& text : {std::string(), std::string("a\0b\r\n", 5), bytes}) {
    write_file_atomically(at("x"), text);
    EXPECT_EQ(read_file(at("x"), 1 << 20), text);
  }
  EXPECT_EQ(entries(), 1u) << "a temporary file was left behind";
}

TEST_F(File, a_file_of_exactly_the_limit_is_read_and_one_byte_more_is_refused) {
  write_file_atomically(at("x"), std::string(2048, 'x'));
  EXPECT_EQ(read_file(at("x"), 2048).size(), 2048u);
  EXPECT_EQ(error_of<DataError>([&] { read_file(at("x"), 2047); }), at("x") + ": the file may have at most 2,047 bytes, it has 2,048");
  EXPECT_EQ(error_of<DataError>([&] { read_file(at("x"), 0); }), at("x") + ": the file may have at most 0 bytes, it has 2,048");
}

TEST_F(File, an_endless_file_is_refused_at_the_limit) {
  EXPECT_EQ(error_of<DataError>([&] { read_file("/dev/zero", 1 << 20); }),
            "/dev/zero: the file may have at most 1,048,576 bytes, it has more");
}

TEST_F(File, a_pipe_is_read_to_its_end) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  const std::string text(200'000, 'y');
  std::jthread writer([&] { std::ofstream(at("pipe")) << text; });
  EXPECT_EQ(read_file(at("pipe"), 1 << 20), text);
}

TEST_F(File, a_missing_file_and_a_folder_say_the_path_and_the_reason) {
  EXPECT_EQ(error_of<IoError>([&] { read_file(at("no\nfile"), 10); }),
            "cannot read '" + at("no\\x0afile") + "': No such file or directory; check the path");
  EXPECT_EQ(error_of<IoError>([&] { read_file(folder(), 10); }),
            "cannot read '" + folder() + "': Is a directory; it is a folder, name a file");
}

TEST_F(File, a_refused_write_says_why_and_leaves_nothing) {
  EXPECT_EQ(error_of<IoError>([&] { write_file_atomically(at("no/x"), "a"); }),
            "cannot write '" + at("no/x") + "': No such file or directory; check the path");
  fs::create_directories(at("taken/inside"));
  EXPECT_EQ(error_of<IoError>([&] { write_file_atomically(at("taken"), "a"); }),
            "cannot write '" + at("taken") + "': Is a directory; it is a folder, name a file");
  EXPECT_EQ(entries(), 1u) << "a temporary file was left behind";
}

TEST_F(File, a_reader_beside_a_writer_sees_old_or_new_never_half) {
  const std::string even(100'000, 'e'), odd(120'000, 'o');
  write_file_atomically(at("x"), even);
  std::jthread writer([&] {
    for (int i = 0; i < 20; ++i) write_file_atomically(at("x"), i % 2 ? even : odd);
  });
  for (int i = 0; i < 200; ++i) {
    const std::string seen = read_file(at("x"), 1 << 20);
    ASSERT_TRUE(seen == even || seen == odd);
  }
}

TEST_F(File, a_name_in_the_current_folder_needs_no_slash) {
  const fs::path before = fs::current_path();
  fs::current_path(folder());
  write_file_atomically("plain", "text");
  fs::current_path(before);
  EXPECT_EQ(read_file(at("plain"), 100), "text");
}

}  // namespace
}  // namespace octet
