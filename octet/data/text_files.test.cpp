#include "octet/data/text_files.hpp"

#include <gtest/gtest.h>

#include "octet/data/compressed.testing.hpp"
#include "octet/data/corpus.testing.hpp"

namespace octet::data {
namespace {

TEST(TextFiles, TellTheirKindByTheirFirstLine) {
  const Scratch scratch;
  const auto kind = [&](const std::string& name, const std::string& bytes) { return kind_of_text(scratch.write(name, bytes)); };
  using enum TextKind;
  EXPECT_EQ(kind("a.jsonl", "\n  \n{\"chosen\": \"a\", \"rejected\": \"b\", \"prompt\": \"c\"}\n{}"), pairs);
  EXPECT_EQ(kind("b.jsonl", "{\"id\": 1, \"text\": \"a\"}"), text);
  EXPECT_EQ(kind("c.ndjson", "{\"messages\": []}\n{\"text\": \"a\"}\n"), conversations);
  EXPECT_EQ(kind("d.jsonl.zst", zstd("{\"text\": \"" + std::string(3 << 20, 'a') + "\"}\n{}")), text);
  EXPECT_EQ(kind("e.txt", "{\"messages\": []}"), text);
  for (const char* other : {"", "[1]", "{\"question\": 1}", "no JSON", "\"text\""})
    EXPECT_EQ(kind("f.jsonl", other), conversations) << other << ": their parser names the fault";
}

TEST(TextFiles, AreKnownByTheirNamesUnlessThatIsAFolder) {
  const Scratch scratch;
  for (const char* name : {"a.jsonl", "b.ndjson.gz", "c.txt.zst", "chat-*.jsonl"}) EXPECT_TRUE(names_text(name)) << name;
  for (const char* name : {"data/docs", "a.bin", "a.json", "a.md", ""}) EXPECT_FALSE(names_text(name)) << name;
  scratch.write("folder.jsonl/dataset.toml", "");
  EXPECT_FALSE(names_text(scratch.at("folder.jsonl")));
}

TEST(TextFiles, HaveAChecksumOfTheirBytesTheirOrderAndTheirKind) {
  const Scratch scratch;
  const std::string a = scratch.write("a.jsonl", "ab"), b = scratch.write("b.jsonl", "c"), joined = scratch.write("c.jsonl", "abc"),
                    plain = scratch.write("a.txt", "ab"), moved = scratch.write("other.jsonl", "ab");
  EXPECT_EQ(checksum_of_files({a, b}), checksum_of_files({moved, b}));
  EXPECT_NE(checksum_of_files({a, b}), checksum_of_files({b, a}));
  EXPECT_NE(checksum_of_files({a, b}), checksum_of_files({joined}));
  EXPECT_NE(checksum_of_files({a}), checksum_of_files({plain}));
}

}  // namespace
}  // namespace octet::data
