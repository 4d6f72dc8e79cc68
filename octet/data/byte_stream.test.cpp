#include "octet/data/byte_stream.hpp"

#include <gtest/gtest.h>

#include "octet/data/compressed.testing.hpp"
#include "octet/data/corpus.testing.hpp"

namespace octet::data {
namespace {

std::string content_of(const std::string& path, std::size_t portion) {
  const auto stream = open_bytes({path, std::filesystem::file_size(path)});
  std::string out;
  for (;;) {
    const std::size_t before = out.size();
    stream->read(portion, out);
    EXPECT_LE(out.size(), before + portion);
    if (out.size() < before + portion) break;
  }
  EXPECT_EQ(stream->consumed(), std::filesystem::file_size(path));
  return out;
}

/// Text that compresses well, poorly, and to almost nothing.
std::vector<std::string> contents() {
  std::string words;
  for (int i = 0; words.size() < 600'000; ++i) words += "word " + std::to_string(i % 1009 * 7) + "\n";
  return {"", "x", words, noise(700'000, 1), std::string(3'000'000, 'a')};
}

TEST(ByteStream, GivesTheContentOfPlainAndCompressedFilesInPortionsOfAnySize) {
  const Scratch scratch;
  for (const std::string& text : contents())
    for (const std::size_t portion : {1000, 65'536, 1'000'000, 5'000'000}) {
      EXPECT_TRUE(content_of(scratch.write("a.txt", text), portion) == text);
      EXPECT_TRUE(content_of(scratch.write("a.txt.gz", gzip(text)), portion) == text) << text.size() << " " << portion;
      EXPECT_TRUE(content_of(scratch.write("a.txt.zst", zstd(text)), portion) == text) << text.size() << " " << portion;
      const std::string half = text.substr(0, text.size() / 2), rest = text.substr(half.size());
      EXPECT_TRUE(content_of(scratch.write("b.gz", gzip(half) + gzip("") + gzip(rest)), portion) == text);
      EXPECT_TRUE(content_of(scratch.write("b.zst", zstd(half) + zstd("") + zstd(rest)), portion) == text);
    }
}

TEST(ByteStream, DamagedCompressedDataIsRefusedByFile) {
  const Scratch scratch;
  const std::string text = contents()[2];
  const auto refusal = [&](const char* name, const std::string& bytes) {
    return error_of<DataError>([&] { content_of(scratch.write(name, bytes), 65'536); });
  };
  const auto expect = [&](const char* name, const std::string& bytes, const char* kind) {
    const std::string message = refusal(name, bytes);
    EXPECT_TRUE(message.starts_with(scratch.at(name) + ": not valid " + kind + " data: ")) << message;
    EXPECT_TRUE(message.ends_with("; fetch or compress the file again")) << message;
  };
  for (std::string whole : {gzip(text), zstd(text)}) {
    const bool is_gzip = whole[0] == '\x1f';
    const char *const name = is_gzip ? "a.gz" : "a.zst", *const kind = is_gzip ? "gzip" : "Zstandard";
    for (const std::size_t kept : {std::size_t(1), std::size_t(9), whole.size() / 2, whole.size() - 1})
      expect(name, whole.substr(0, kept), kind);
    expect(name, whole + "x", kind);
    expect(name, "plain text", kind);
    std::string damaged = whole;
    damaged[whole.size() / 2] = char(damaged[whole.size() / 2] ^ 0x55);
    if (is_gzip) expect(name, damaged, kind);  // a Zstandard frame of this writer has no checksum
  }
  EXPECT_TRUE(has(refusal("a.gz", gzip(text).substr(0, 1000)), "it ends within a member"));
  EXPECT_TRUE(has(refusal("a.zst", zstd(text).substr(0, 1000)), "it ends within a frame"));
}

TEST(ByteStream, AFileOfAnotherSizeThanChosenIsRefused) {
  const Scratch scratch;
  for (const char* name : {"a.txt", "a.gz"}) {
    const std::string path = scratch.write(name, "12345");
    EXPECT_EQ(error_of<DataError>([&] {
                open_bytes({path, 4});
              }),
              path + ": the file had 4 bytes when it was chosen, now it has 5; leave it alone while it is tokenized");
  }
}

}  // namespace
}  // namespace octet::data
