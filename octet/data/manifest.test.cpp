#include "octet/data/manifest.hpp"

#include <gtest/gtest.h>

#include "octet/data/corpus.testing.hpp"

namespace octet::data {
namespace {

const std::string good =
    "# a comment\nformat = 1\ntokenizer = \"byte\"\nvocab_size = 257\ntokens = 30\ndocuments = 2\n"
    "\n[[shard]]\nfile = \"a.tok\"\ntokens = 10\ndocuments = 2\nchecksum = \"00ff\"\n"
    "[[shard]]\n  file=\"b.tok\"\r\ntokens = 20\ndocuments = 0\nchecksum = \"11ee\"\n";

std::string refusal(const Scratch& scratch, const std::string& text) {
  replace_file(scratch.at("dataset.toml"), text);
  return error_of<DataError>([&] { read_manifest(scratch.folder()); });
}

std::string replaced(const std::string& what, const std::string& with) {
  std::string text = good;
  return text.replace(text.find(what), what.size(), with);
}

TEST(Manifest, ReadsBackWhatWasWritten) {
  const Scratch scratch;
  const Manifest manifest{"byte", 257, 30, 2, {{"a.tok", 10, 2, "00ff"}, {"b.tok", 20, 0, "11ee"}}};
  write_manifest(scratch.folder(), manifest);
  const std::string written = bytes_of(scratch.at("dataset.toml"));
  EXPECT_EQ(refusal(scratch, good), "no error") << "comments, blanks and CRLF are fine";
  for (const std::string& text : {written, good}) {
    replace_file(scratch.at("dataset.toml"), text);
    const Manifest back = read_manifest(scratch.folder());
    EXPECT_EQ(back.tokenizer, "byte");
    EXPECT_EQ(back.vocab_size, 257u);
    EXPECT_EQ(back.tokens, 30u);
    EXPECT_EQ(back.documents, 2u);
    ASSERT_EQ(back.shards.size(), 2u);
    EXPECT_EQ(back.shards[1].file, "b.tok");
    EXPECT_EQ(back.shards[1].tokens, 20u);
    EXPECT_EQ(back.shards[1].checksum, "11ee");
  }
}

TEST(Manifest, CutAtAnyByteItIsRefused) {
  const Scratch scratch;
  for (std::size_t n = 0; n + 1 < good.size(); ++n) {
    const std::string message = refusal(scratch, good.substr(0, n));
    ASSERT_TRUE(has(message, "dataset.toml: line ") && has(message, "octet tokenize")) << n << ": " << message;
  }
}

TEST(Manifest, AWrongLineIsNamed) {
  const Scratch scratch;
  const std::string path = scratch.at("dataset.toml"), remedy = "; copy the dataset again or run `octet tokenize` again";
  const std::pair<std::string, std::string> cases[] = {
      {replaced("vocab_size = 257", "vocab_size = 257.0"),
       "line 4: 'vocab_size' must be a whole number from 1 to 281474976710656, got 257.0"},
      {replaced("vocab_size = 257", "vocab_size = -1"), "line 4: 'vocab_size' must be a whole number from 1 to 281474976710656, got -1"},
      {replaced("vocab_size = 257", "vocab_size = 99999999999999999999"),
       "line 4: 'vocab_size' must be a whole number from 1 to 281474976710656, got 99999999999999999999"},
      {replaced("vocab_size = 257", "vocab_sise = 257"), "line 1: the key 'vocab_size' is missing here"},
      {replaced("vocab_size = 257", "vocab_size = 257\nvocab_size = 257"), "line 5: the key 'vocab_size' occurs twice"},
      {replaced("vocab_size = 257", "vocab_size = 257\nextra\x1b = 1"), "line 5: the key 'extra\\x1b' is unknown here"},
      {replaced("tokenizer = \"byte\"", "tokenizer = byte"), "line 3: 'tokenizer' must be a text in double quotes, got byte"},
      {replaced("tokenizer = \"byte\"", "tokenizer = \"by\"te\""), "line 3: 'tokenizer' must be a text in double quotes, got \"by\"te\""},
      {replaced("format = 1", "format = 2"), "line 1: this program reads dataset format 1, got 2"},
      {replaced("tokens = 20", "tokens = 21"),
       "line 1: the 2 shards listed hold 31 tokens and 2 documents, the dataset must have 30 and 2"},
      {replaced("[[shard]]", "[shard]"), "line 8: a line must be 'key = value' or '[[shard]]', got '[shard]'"},
  };
  for (const auto& [text, wanted] : cases) EXPECT_EQ(refusal(scratch, text), path + ": " + wanted + remedy);
}

TEST(Manifest, AShardOutsideTheFolderIsRefused) {
  const Scratch scratch;
  for (const char* const name : {"../a.tok", "/etc/passwd", "..", ".", "b/../../a.tok"})
    EXPECT_TRUE(has(refusal(scratch, replaced("a.tok", name)), "'file' must be the name of a file in this folder, got ")) << name;
  EXPECT_TRUE(has(refusal(scratch, replaced("a.tok", std::string("a\0b", 3))), "'file' must be the name of a file in this folder, got "));
}

TEST(Manifest, RandomDamageGivesAnErrorOrASoundManifestNeverAnythingElse) {
  const Scratch scratch;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    std::string text = good;
    for (const std::uint32_t word : philox(1, i).w) text[word / 256 % text.size()] = char(word);
    const std::string message = refusal(scratch, text);
    ASSERT_TRUE(message == "no error" || has(message, "dataset.toml: line ")) << message;
  }
}

}  // namespace
}  // namespace octet::data
