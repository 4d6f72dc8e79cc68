#include "octet/data/foreign_tokens.hpp"

#include <gtest/gtest.h>

#include "octet/data/corpus.testing.hpp"
#include "octet/data/windows.hpp"

// Files as the three programs write them, byte by byte.

namespace octet::data {
namespace {

template <class T>
std::string bytes_of(std::initializer_list<std::int64_t> values) {
  std::string out;
  for (const std::int64_t v : values) {
    const T x = T(v);
    out.append(reinterpret_cast<const char*>(&x), sizeof(T));
  }
  return out;
}

std::string llm_c(std::int32_t magic, std::int32_t version, std::int32_t count, const std::string& tokens) {
  std::string header = bytes_of<std::int32_t>({magic, version, count});
  header.resize(1024, '\0');
  return header + tokens;
}

std::string llm_q(std::initializer_list<std::int64_t> words, const std::string& tokens) {
  std::string header = "BIN.TOK\n" + bytes_of<std::int32_t>(words);
  header.resize(1023, '*');
  return header + "\n" + tokens;
}

// Two documents of three and two tokens; the second one has two sequences.
std::string megatron_index(int type, int bytes) {
  return std::string("MMIDIDX\0\0", 9) + bytes_of<std::uint64_t>({1}) + char(type) + bytes_of<std::uint64_t>({3, 3}) +
         bytes_of<std::int32_t>({3, 1, 1}) + bytes_of<std::int64_t>({0, 3 * bytes, 4 * bytes}) + bytes_of<std::int64_t>({0, 1, 3});
}

std::vector<std::int32_t> all_of(const Dataset& d) {
  std::vector<std::int32_t> out(d.token_count());
  d.read(0, out);
  return out;
}
std::vector<std::uint64_t> documents_of(const Dataset& d) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t i = 0; i < d.document_count(); ++i) out.push_back(d.document_start(i));
  return out;
}

struct Read {
  std::vector<std::int32_t> tokens;
  std::vector<std::uint64_t> documents;
  std::int32_t vocabulary;
};
void expect_read(const std::string& path, const Read& wanted) {
  const Dataset d(path);
  EXPECT_EQ(all_of(d), wanted.tokens) << path;
  EXPECT_EQ(documents_of(d), wanted.documents) << path;
  EXPECT_EQ(d.vocab_size(), wanted.vocabulary) << path;
  EXPECT_EQ(d.tokenizer(), unknown_tokenizer);
  EXPECT_EQ(d.fingerprint(), Dataset(path, Verify::header).fingerprint());
  EXPECT_THROW(d.open_tokenizer(), DataError);
}

TEST(ForeignTokens, OfLlmCLlmQNanoGptAndMegatronAreReadInPlace) {
  const Scratch s;
  s.write("c/a_000.bin", llm_c(20240520, 1, 5, bytes_of<std::uint16_t>({50256, 7, 8, 50256, 9})));
  s.write("c/a_001.bin", llm_c(20240520, 1, 3, bytes_of<std::uint16_t>({10, 50256, 11})));
  expect_read(s.at("c/*.bin"), {{50256, 7, 8, 50256, 9, 10, 50256, 11}, {0, 3, 6}, 50257});
  s.write("l/a.bin", llm_c(20240801, 7, 3, bytes_of<std::uint32_t>({128000, 100000, 5})));
  expect_read(s.at("l/a.bin"), {{128000, 100000, 5}, {0}, 128256});
  s.write("q/a.bin", llm_q({2, 4, 5, 9, 0}, bytes_of<std::int32_t>({3, 70000, 10, 4, 10})));
  s.write("q/b.bin", llm_q({1, 4, 2}, bytes_of<std::int32_t>({8, 10})));
  expect_read(s.at("q/*.bin"), {{3, 70000, 10, 4, 10, 8, 10}, {0, 3, 5}, 70001});
  s.write("n/train.bin", bytes_of<std::uint16_t>({7, 8, 50256, 9, 50256}));
  expect_read(s.at("n/train.bin"), {{7, 8, 50256, 9, 50256}, {0, 3}, 50257});
  s.write("characters/train.bin", bytes_of<std::uint16_t>({7, 64, 3}));
  expect_read(s.at("characters/train.bin"), {{7, 64, 3}, {0}, 65});
  s.write("m/x.idx", megatron_index(8, 2));
  s.write("m/x.bin", bytes_of<std::uint16_t>({1, 2, 3, 4, 5}));
  expect_read(s.at("m/x.bin"), {{1, 2, 3, 4, 5}, {0, 3}, 6});
  s.write("w/x.idx", megatron_index(4, 4));
  s.write("w/x.bin", bytes_of<std::int32_t>({1, 2, 70000, 4, 5}));
  expect_read(s.at("w/x.bin"), {{1, 2, 70000, 4, 5}, {0, 3}, 70001});
}

TEST(ForeignTokens, ThatAreCutOrOfAnotherKindAreRefusedByName) {
  const Scratch s;
  const auto refused = [&](const std::string& name, const std::string& bytes) {
    s.write(name, bytes);
    return error_of<DataError>([&] { Dataset d(s.at(name)); });
  };
  EXPECT_TRUE(has(refused("a.bin", llm_c(20240520, 1, 6, bytes_of<std::uint16_t>({1, 2}))),
                  "6 tokens, so the file must have 1036 bytes, got 1028"));
  EXPECT_TRUE(has(refused("b.bin", llm_c(20240520, 2, 2, bytes_of<std::uint16_t>({1, 2}))), "must have the version 1, got 2"));
  EXPECT_TRUE(has(refused("c.bin", llm_c(20240520, 1, 1, bytes_of<std::uint16_t>({50300}))), "below 50257, the largest is 50300"));
  EXPECT_TRUE(has(refused("d.bin", "PK\x03\x04zip"), "no tokens of llm.c, LLM.Q, Megatron or nanoGPT"));
  EXPECT_TRUE(has(refused("e.bin", "abc"), "odd number of bytes"));
  EXPECT_TRUE(has(refused("f.bin", ""), "no tokens"));
  EXPECT_TRUE(has(refused("g.bin", llm_c(20240520, 1, 1, bytes_of<std::uint16_t>({5}))), "must begin with a document"));
  EXPECT_TRUE(has(refused("q.bin", llm_q({2, 4, 3, 9, 1}, bytes_of<std::int32_t>({1, 2, 3}) + "m")), "masks of LLM.Q are not read"));
  EXPECT_TRUE(has(refused("r.bin", llm_q({3, 4, 1, 9, 0}, bytes_of<std::int32_t>({1}))), "must have the version 1 or 2, got 3"));
  EXPECT_TRUE(has(refused("s.bin", llm_q({2, 2, 1, 9, 0}, bytes_of<std::int32_t>({1}))), "must have 4 bytes, got 2"));
  EXPECT_TRUE(
      has(refused("t.bin", llm_q({2, 4, 2, 9, 0}, bytes_of<std::int32_t>({1}))), "2 tokens, so the file must have 1032 bytes, got 1028"));
  EXPECT_TRUE(has(refused("u.bin", "BIN.TOK\n"), "a header of 1024 bytes"));
  s.write("m.idx", megatron_index(8, 2));
  EXPECT_TRUE(has(refused("m.bin", bytes_of<std::uint16_t>({1, 2, 3})), "5 tokens of 2 bytes, the file has 6 bytes"));
  s.write("m.idx", megatron_index(6, 2));
  EXPECT_TRUE(has(refused("m.bin", bytes_of<std::uint16_t>({1, 2, 3, 4, 5})), "u16 (8) or i32 (4), got the code 6"));
  s.write("m.idx", megatron_index(8, 2).substr(0, 60));
  EXPECT_TRUE(has(refused("m.bin", bytes_of<std::uint16_t>({1, 2, 3, 4, 5})), "do not fit a file of 60 bytes"));
  EXPECT_TRUE(has(error_of<ConfigError>([&] { Dataset d(s.at("none/*.bin")); }), "there is no such file"));
}

}  // namespace
}  // namespace octet::data
