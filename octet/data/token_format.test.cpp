#include "octet/data/token_format.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "octet/data/corpus.testing.hpp"

namespace octet::data {
namespace {

ShardHeader sample_header() {
  ShardHeader h;
  h.bytes_per_token = 2, h.token_count = 1000, h.document_count = 3, h.first_token = 5000, h.first_document = 12;
  h.vocab_size = 257, h.separator = 256, h.tokenizer = "byte";
  h.tokens = {1, 2}, h.documents = {3, 4};
  return h;
}

std::string refusal(const ShardHeader& h) {
  return error_of<DataError>([&] { decode_header(encode_header(h), h.file_bytes(), "x.tok"); });
}

std::string refusal_with(const std::function<void(ShardHeader&)>& change) {
  ShardHeader h = sample_header();
  change(h);
  return refusal(h);
}

std::uint64_t number_at(std::string_view bytes, std::size_t at, int count) {
  std::uint64_t value = 0;
  for (int i = 0; i < count; ++i) value |= std::uint64_t(static_cast<unsigned char>(bytes[at + std::size_t(i)])) << 8 * i;
  return value;
}

TEST(TokenFormat, TheHeaderHasTheDocumentedOffsets) {
  const ShardHeader h = sample_header();
  const std::string bytes = encode_header(h);
  ASSERT_EQ(bytes.size(), 256u);
  EXPECT_EQ(bytes.substr(0, 8), "OCTETTOK");
  EXPECT_EQ(number_at(bytes, 8, 4), 1u);
  EXPECT_EQ(number_at(bytes, 12, 4), 2u);
  EXPECT_EQ(number_at(bytes, 16, 8), 1000u);
  EXPECT_EQ(number_at(bytes, 24, 8), 3u);
  EXPECT_EQ(number_at(bytes, 32, 8), 5000u);
  EXPECT_EQ(number_at(bytes, 40, 8), 12u);
  EXPECT_EQ(number_at(bytes, 48, 4), 257u);
  EXPECT_EQ(number_at(bytes, 52, 4), 256u);
  EXPECT_EQ(bytes.substr(64, 6), std::string("byte\0\0", 6));
  EXPECT_EQ(number_at(bytes, 128, 8), 1u);
  EXPECT_EQ(number_at(bytes, 136, 8), 2u);
  EXPECT_EQ(number_at(bytes, 144, 8), 3u);
  EXPECT_EQ(number_at(bytes, 152, 8), 4u);
  EXPECT_EQ(h.table_offset(), 256u + 2000u);
  EXPECT_EQ(h.file_bytes(), 256u + 2000u + 24u);
}

TEST(TokenFormat, AHeaderReadsBackAsItWasWritten) {
  const ShardHeader h = sample_header(), back = decode_header(encode_header(h), h.file_bytes(), "x.tok");
  EXPECT_EQ(back.bytes_per_token, h.bytes_per_token);
  EXPECT_EQ(back.token_count, h.token_count);
  EXPECT_EQ(back.document_count, h.document_count);
  EXPECT_EQ(back.first_token, h.first_token);
  EXPECT_EQ(back.first_document, h.first_document);
  EXPECT_EQ(back.vocab_size, h.vocab_size);
  EXPECT_EQ(back.separator, h.separator);
  EXPECT_EQ(back.tokenizer, h.tokenizer);
  EXPECT_EQ(back.tokens, h.tokens);
  EXPECT_EQ(back.documents, h.documents);
}

TEST(TokenFormat, TheDocumentTableStandsAtAMultipleOfEightBehindOddTokenCounts) {
  ShardHeader h = sample_header();
  h.token_count = 3;
  EXPECT_EQ(h.table_offset(), 264u);
  h.bytes_per_token = 4;
  EXPECT_EQ(h.table_offset(), 272u);
}

TEST(TokenFormat, AFileCutAtAnyByteOfItsHeaderIsRefusedWithItsSize) {
  const ShardHeader h = sample_header();
  const std::string bytes = encode_header(h);
  for (std::size_t n = 0; n < bytes.size(); ++n)
    ASSERT_EQ(error_of<DataError>([&] { decode_header(bytes.substr(0, n), n, "x.tok"); }),
              "x.tok: a token shard has a header of 256 bytes, this file ends at byte " + std::to_string(n) +
                  "; copy the file again or run `octet tokenize` again");
}

TEST(TokenFormat, EveryFlippedBitOfAHeaderIsFound) {
  const ShardHeader h = sample_header();
  for (std::size_t bit = 0; bit < 8 * 256; ++bit) {
    std::string bytes = encode_header(h);
    bytes[bit / 8] = char(bytes[bit / 8] ^ 1 << bit % 8);
    const std::string message = error_of<DataError>([&] { decode_header(bytes, h.file_bytes(), "x.tok"); });
    ASSERT_TRUE(has(message, "x.tok: byte ") && has(message, "octet tokenize")) << "bit " << bit << ": " << message;
  }
}

TEST(TokenFormat, AnotherVersionAndAnotherKindOfFileAreNamed) {
  const ShardHeader h = sample_header();
  std::string bytes = encode_header(h);
  bytes[8] = 2;
  EXPECT_EQ(error_of<DataError>([&] { decode_header(bytes, h.file_bytes(), "x.tok"); }),
            "x.tok: byte 8: this program reads token format version 1, got version 2; run `octet tokenize` again with this program");
  bytes.replace(0, 8, "BIN.TOK\n");
  EXPECT_EQ(error_of<DataError>([&] { decode_header(bytes, h.file_bytes(), "x.tok"); }),
            "x.tok: byte 0: a token shard begins with OCTETTOK, got 'BIN.TOK\\x0a'; copy the file again or run `octet tokenize` again");
}

TEST(TokenFormat, ASizeThatTheCountsDoNotGiveIsRefusedEitherWay) {
  const ShardHeader h = sample_header();
  const std::string bytes = encode_header(h);
  EXPECT_TRUE(has(error_of<DataError>([&] { decode_header(bytes, h.file_bytes() - 1, "x.tok"); }), "truncated"));
  EXPECT_TRUE(has(error_of<DataError>([&] { decode_header(bytes, h.file_bytes() + 1, "x.tok"); }), "too long"));
  EXPECT_TRUE(has(error_of<DataError>([&] { decode_header(bytes, 256, "x.tok"); }), "truncated"));
}

TEST(TokenFormat, ValuesThatCannotBeRightAreRefusedEvenUnderARightChecksum) {
  EXPECT_EQ(refusal(sample_header()), "no error");
  for (const std::uint32_t n : {0u, 1u, 3u, 255u, 0xFFFFFFFFu})
    EXPECT_TRUE(has(refusal_with([&](ShardHeader& h) { h.bytes_per_token = n; }), "byte 12: bytes per token must be 2 or 4, got")) << n;
  for (const std::uint64_t n : {std::uint64_t(0), std::uint64_t(1) << 49, std::uint64_t(1) << 63, ~std::uint64_t(0)})
    EXPECT_TRUE(has(refusal_with([&](ShardHeader& h) { h.token_count = n; }), "byte 16: the token count must be")) << n;
  for (const std::uint64_t n : {std::uint64_t(1001), std::uint64_t(1) << 61, ~std::uint64_t(0)})
    EXPECT_TRUE(has(refusal_with([&](ShardHeader& h) { h.document_count = n; }), "byte 24: at most 1000 documents")) << n;
  EXPECT_TRUE(has(refusal_with([](ShardHeader& h) { h.first_token = ~std::uint64_t(0); }), "byte 32:"));
  EXPECT_TRUE(has(refusal_with([](ShardHeader& h) { h.first_document = 5001; }), "byte 40:"));
  for (const std::uint32_t n : {0u, 0x10001u, 0xFFFFFFFFu})
    EXPECT_TRUE(has(refusal_with([&](ShardHeader& h) { h.vocab_size = n; }), "byte 48:")) << n;
  EXPECT_TRUE(has(refusal_with([](ShardHeader& h) { h.separator = 257; }), "byte 52:"));
  EXPECT_EQ(refusal_with([](ShardHeader& h) { h.separator = ShardHeader::no_separator; }), "no error");
  EXPECT_TRUE(has(refusal_with([](ShardHeader& h) { h.tokenizer = ""; }), "byte 64:"));
}

TEST(TokenFormat, SixteenBitsServeWhileEveryIdFits) {
  EXPECT_EQ(bytes_per_token_of(1), 2u);
  EXPECT_EQ(bytes_per_token_of(65536), 2u);
  EXPECT_EQ(bytes_per_token_of(65537), 4u);
}

}  // namespace
}  // namespace octet::data
