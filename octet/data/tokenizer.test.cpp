#include "octet/data/tokenizer.hpp"

#include <gtest/gtest.h>

#include "octet/data/byte_tokenizer.hpp"
#include "octet/data/corpus.testing.hpp"

namespace octet::data {
namespace {

TEST(ByteTokenizer, EveryByteIsItsOwnIdAndComesBack) {
  const ByteTokenizer tokenizer;
  std::string text;
  for (int c = 0; c < 256; ++c) text += char(c);
  std::vector<std::int32_t> ids{7};
  tokenizer.encode(text, ids);
  ASSERT_EQ(ids.size(), 257u) << "encode appends";
  EXPECT_EQ(ids[0], 7);
  for (int c = 0; c < 256; ++c) EXPECT_EQ(ids[std::size_t(c) + 1], c);
  EXPECT_EQ(tokenizer.decode(std::span(ids).subspan(1)), text);
}

TEST(ByteTokenizer, SeparatorAndPaddingIdsDecodeToNothing) {
  const ByteTokenizer tokenizer;
  EXPECT_EQ(tokenizer.vocab_size(), 257);
  EXPECT_EQ(tokenizer.document_separator(), 256);
  EXPECT_EQ(tokenizer.decode(std::vector<std::int32_t>{'a', 256, 271, -1, 'b', 2147483647}), "ab");
  EXPECT_EQ(tokenizer.decode({}), "");
}

TEST(ByteTokenizer, InvalidUtf8AndZeroBytesPassUnchanged) {
  const ByteTokenizer tokenizer;
  const std::string text("\xff\xfe\0\xc3(\xed\xa0\x80", 8);
  std::vector<std::int32_t> ids;
  tokenizer.encode(text, ids);
  EXPECT_EQ(tokenizer.decode(ids), text);
}

TEST(Tokenizers, AreFoundByNameAndATypoGetsASuggestion) {
  EXPECT_EQ(make_tokenizer("byte")->name(), "byte");
  EXPECT_EQ(error_of<ConfigError>([] { make_tokenizer("bytes"); }), "no tokenizer is called 'bytes', did you mean 'byte'?; there is: byte");
  EXPECT_EQ(error_of<ConfigError>([] { make_tokenizer("\x1bx-tokenizer"); }), "no tokenizer is called '\\x1bx-tokenizer'; there is: byte");
}

TEST(Checksum, AgreesWithThePublishedValueOfNothingAtAll) { EXPECT_EQ(to_text(checksum_of("")), "99aa06d3014798d86001c324468d497f"); }

}  // namespace
}  // namespace octet::data
