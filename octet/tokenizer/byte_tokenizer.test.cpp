#include "octet/tokenizer/byte_tokenizer.hpp"

#include <gtest/gtest.h>

#include "octet/base/checksum.hpp"

namespace octet::tokenizer {
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

}  // namespace
}  // namespace octet::tokenizer
