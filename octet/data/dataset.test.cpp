#include "octet/data/dataset.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "octet/data/corpus.testing.hpp"
#include "octet/data/dataset_writer.hpp"
#include "octet/data/manifest.hpp"

namespace octet::data {
namespace {
namespace fs = std::filesystem;

std::string refusal(const std::string& folder, Verify verify = Verify::everything) {
  return error_of<DataError>([&] { Dataset(folder, verify); });
}

/// A tokenizer of a few large ids, to make shards of 4 bytes per token.
class WideTokenizer final : public tokenizer::Tokenizer {
 public:
  std::string_view name() const override { return "wide"; }
  std::int32_t vocab_size() const override { return 100'001; }
  std::optional<std::int32_t> document_separator() const override { return 100'000; }
  std::size_t encode(std::string_view text, std::vector<std::int32_t>& ids, tokenizer::Position) const override {
    for (const char c : text) ids.push_back(70'000 + c);
    return 0;
  }
  std::string decode(std::span<const std::int32_t>) const override { return {}; }
  std::size_t last_cut(std::string_view text) const override { return text.size(); }
};

TEST(Dataset, GivesBackEveryTokenAndDocumentOverTheBordersOfShards) {
  for (const std::uint64_t shard_bytes : {1024ull, 1031ull, 2000ull, 1ull << 20}) {
    const Scratch scratch;
    const auto texts = some_texts(60);
    const auto wanted = stream_of(texts);
    const Dataset dataset(make_dataset(scratch, texts, shard_bytes));
    EXPECT_EQ(all_tokens(dataset), wanted);
    EXPECT_EQ(dataset.document_count(), 60u);
    std::uint64_t start = 0;
    for (std::size_t i = 0; i < texts.size(); start += texts[i++].size() + 1) ASSERT_EQ(dataset.document_start(i), start) << i;
    for (const Shard& shard : dataset.shards()) EXPECT_LE(fs::file_size(shard.path()), shard_bytes);
    EXPECT_GT(dataset.shards().size(), shard_bytes < 2000 ? 2u : 0u);
    for (std::size_t first = 0; first + 13 <= wanted.size(); first += 5) {
      std::vector<std::int32_t> some(13);
      dataset.read(first, some);
      ASSERT_TRUE(std::equal(some.begin(), some.end(), wanted.begin() + std::ptrdiff_t(first)));
    }
  }
}

TEST(Dataset, ADocumentLongerThanManyShardsBeginsInOneOfThem) {
  const Scratch scratch;
  const std::vector<std::string> texts{"first", noise(5000, 1), "last"};
  const Dataset dataset(make_dataset(scratch, texts, 1024));
  EXPECT_GT(dataset.shards().size(), 10u);
  EXPECT_EQ(dataset.shards()[3].header().document_count, 0u);
  EXPECT_EQ(dataset.document_start(0), 0u);
  EXPECT_EQ(dataset.document_start(1), 6u);
  EXPECT_EQ(dataset.document_start(2), 5007u);
  EXPECT_EQ(all_tokens(dataset), stream_of(texts));
}

TEST(Dataset, IdsBeyondSixteenBitsTakeFourBytes) {
  const Scratch scratch;
  const WideTokenizer tokenizer;
  {
    DatasetWriter writer(scratch.at("data"), false);
    ShardBuilder builder(tokenizer, 1 << 20);
    builder.begin_document();
    ASSERT_EQ(builder.append(std::vector<std::int32_t>{70'001, 2, 100'000}), 3u);
    writer.add(builder.finish());
    writer.commit();
  }
  const Dataset dataset(scratch.at("data"));
  EXPECT_EQ(dataset.shards()[0].header().bytes_per_token, 4u);
  EXPECT_EQ(dataset.tokenizer(), "wide");
  EXPECT_EQ(all_tokens(dataset), (std::vector<std::int32_t>{70'001, 2, 100'000}));
}

TEST(Dataset, AShardCutAnywhereIsRefused) {
  const Scratch scratch;
  const std::string folder = make_dataset(scratch, some_texts(5)), path = shard_path(folder, 0), whole = bytes_of(path);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    replace_file(path, whole.substr(0, n));
    const std::string message = refusal(folder, Verify::header);
    ASSERT_TRUE(has(message, path + ": ") && has(message, n < 256 ? "this file ends at byte" : "truncated")) << n << ": " << message;
  }
  replace_file(path, whole + "x");
  EXPECT_TRUE(has(refusal(folder), "too long"));
}

TEST(Dataset, EveryFlippedBitOfAShardIsFound) {
  const Scratch scratch;
  const std::string folder = make_dataset(scratch, {"some text", "and more"}), path = shard_path(folder, 0), whole = bytes_of(path);
  const std::size_t token_bytes = 2 * stream_of({"some text", "and more"}).size(), padding = 8 - token_bytes % 8;
  const std::size_t table = 256 + token_bytes + padding;
  ASSERT_LT(padding, 8u) << "the test wants padding to be there";
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = char(bytes[bit / 8] ^ 1 << bit % 8);
    replace_file(path, bytes);
    const std::string message = refusal(folder);
    const char* const wanted = bit / 8 < 256 ? "byte " : bit / 8 < table ? "the tokens are damaged" : "table is damaged";
    ASSERT_TRUE(has(message, wanted)) << "byte " << bit / 8 << ": " << message;
  }
}

TEST(Dataset, AnIdBeyondTheVocabularyIsNamedWithItsOffset) {
  const Scratch scratch;
  const std::string folder = make_dataset(scratch, {"some text"}), path = shard_path(folder, 0);
  std::string bytes = bytes_of(path);
  bytes[256 + 2 * 4] = char(0x34), bytes[256 + 2 * 4 + 1] = char(0x12);
  ShardHeader header = decode_header(std::string_view(bytes).substr(0, 256), bytes.size(), path);
  header.tokens = checksum_of(std::string_view(bytes).substr(256, 24));
  bytes.replace(0, 256, encode_header(header));
  replace_file(path, bytes);
  const std::string wanted =
      path +
      ": byte 264: token ids must be below the vocabulary of 257, token 4 is 4660; copy the file again or run `octet "
      "tokenize` again";
  EXPECT_EQ(error_of<DataError>([&] { Shard{path}; }), wanted);
  const Shard unverified(path, Verify::header);
  std::vector<std::int32_t> ids(10);
  EXPECT_EQ(error_of<DataError>([&] { unverified.read(0, ids); }), wanted) << "also when it is first read in training";
  unverified.read(5, std::span(ids).first(5));
}

TEST(Dataset, ADocumentTableOutOfOrderIsRefusedEvenUnderARightChecksum) {
  const Scratch scratch;
  const std::string path = shard_path(make_dataset(scratch, {"abc", "def", "ghi"}), 0);
  const std::string whole = bytes_of(path);
  const std::size_t table = whole.size() - 24;
  const auto refusal_of_third = [&](std::uint64_t third) {
    std::string bytes = whole;
    for (int i = 0; i < 8; ++i) bytes[table + 16 + std::size_t(i)] = char(third >> 8 * i);
    ShardHeader header = decode_header(std::string_view(bytes).substr(0, 256), bytes.size(), path);
    header.documents = checksum_of(std::string_view(bytes).substr(table));
    bytes.replace(0, 256, encode_header(header));
    replace_file(path, bytes);
    return error_of<DataError>([&] { Shard{path}; });
  };
  EXPECT_EQ(refusal_of_third(8), "no error");
  for (const std::uint64_t bad : {std::uint64_t(0), std::uint64_t(4), std::uint64_t(12), std::uint64_t(1) << 63, ~std::uint64_t(0)})
    EXPECT_TRUE(has(refusal_of_third(bad), "byte " + std::to_string(table + 16) + ": document 2 must begin at a token from 5 to 11, got "))
        << bad;
}

TEST(Dataset, SwappedMissingAndForeignShardsAreNamed) {
  const Scratch scratch;
  const std::string folder = make_dataset(scratch, some_texts(60), 1024);
  const std::string first = shard_path(folder, 0), second = shard_path(folder, 1), third = shard_path(folder, 2);
  ASSERT_EQ(refusal(folder), "no error");
  fs::rename(first, scratch.at("kept")), fs::rename(second, first), fs::rename(scratch.at("kept"), second);
  EXPECT_TRUE(has(refusal(folder), first + ": ") && has(refusal(folder), "according to dataset.toml")) << refusal(folder);
  fs::rename(first, scratch.at("kept")), fs::rename(second, first), fs::rename(scratch.at("kept"), second);
  ASSERT_EQ(refusal(folder), "no error");

  const Scratch other;
  auto texts = some_texts(60);
  texts[59][0] = char(texts[59][0] + 1);  // the same sizes everywhere, one other byte at the end
  const std::string foreign = make_dataset(other, texts, 1024);
  const std::size_t last = Dataset(folder).shards().size() - 1;
  const std::string path = shard_path(folder, last);
  const std::string foreign_bytes = bytes_of(shard_path(foreign, last));
  replace_file(path, foreign_bytes);
  EXPECT_TRUE(has(refusal(folder), "the header's checksum must be ")) << refusal(folder);

  fs::remove(third);
  EXPECT_EQ(refusal(folder), third + ": there is no such file; copy it again or run `octet tokenize` again");
  fs::create_directory(third);
  EXPECT_TRUE(has(refusal(folder), third + ": is a folder, not a regular file"));
}

TEST(Dataset, AShardChangedWhileItIsOpenStopsTheReadingAndOneReplacedDoesNot) {
  const Scratch scratch;
  const std::string folder = make_dataset(scratch, some_texts(5)), path = shard_path(folder, 0), whole = bytes_of(path);
  {
    const Dataset dataset(folder);
    fs::rename(path, scratch.at("old"));
    fs::copy_file(scratch.at("old"), path);
    EXPECT_EQ(all_tokens(dataset), stream_of(some_texts(5))) << "the open file is still the old one";
    fs::remove(path);
    EXPECT_EQ(all_tokens(dataset), stream_of(some_texts(5)));
  }
  replace_file(path, whole);
  const Dataset cut(folder);
  fs::resize_file(path, 300);
  EXPECT_EQ(error_of<DataError>([&] { all_tokens(cut); }),
            path + ": the file had " + std::to_string(whole.size()) +
                " bytes when it was opened, now it has 300; leave shards alone while they are read");
  replace_file(path, whole);
  const Dataset touched(folder);
  fs::last_write_time(path, fs::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_TRUE(has(error_of<DataError>([&] { all_tokens(touched); }), "was written to after it was opened"));
}

TEST(Dataset, ItsFingerprintIsOneOfContent) {
  const Scratch a, b, c;
  auto texts = some_texts(30);
  const auto print_a = Dataset(make_dataset(a, texts, 1024)).fingerprint(), print_b = Dataset(make_dataset(b, texts, 1024)).fingerprint();
  texts[7][3] = char(texts[7][3] ^ 1);
  const auto print_c = Dataset(make_dataset(c, texts, 1024)).fingerprint();
  EXPECT_EQ(print_a, print_b);
  EXPECT_NE(print_a, print_c);
}

TEST(Dataset, AModelWithTooFewIdsIsToldHowManyItNeeds) {
  const Scratch scratch;
  const Dataset dataset(make_dataset(scratch, {"abc"}));
  require_vocabulary(dataset, 257);
  require_vocabulary(dataset, 272);
  const std::string few =
      "data.path: '" + scratch.at("data") + "' has token ids up to 256 (tokenizer 'byte'), the model's vocabulary has 256; ";
  EXPECT_EQ(error_of<ConfigError>([&] { require_vocabulary(dataset, 256, "model.vocabulary"); }),
            few + "set model.vocabulary to at least 257 or tokenize with the model's tokenizer");
  EXPECT_EQ(error_of<ConfigError>([&] { require_vocabulary(dataset, 256); }), few + "tokenize with the model's tokenizer");
}

TEST(Dataset, AFolderWithoutAFinishedDatasetSaysWhatToRun) {
  const Scratch scratch;
  EXPECT_TRUE(has(error_of<ConfigError>([&] { Dataset(scratch.at("none")); }),
                  "there is no folder '" + scratch.at("none") + "'; name another with --data, or make it with `octet tokenize"));
  EXPECT_TRUE(has(error_of<ConfigError>([&] { Dataset(scratch.folder()); }), "holds no dataset.toml, so it is no finished dataset"));
}

}  // namespace
}  // namespace octet::data
