#include <gtest/gtest.h>

#include <filesystem>

#include "octet/data/corpus.testing.hpp"
#include "octet/data/manifest.hpp"
#include "octet/json/value.hpp"
#include "octet/tokenizer/bpe_training.hpp"
#include "octet/tokenizer/pre_tokenizer.hpp"

namespace octet::data {
namespace {
namespace fs = std::filesystem;

/// A vocabulary of bytes and two special tokens, 256 and 257.
std::string small_json(std::string_view pattern = tokenizer::default_pattern) {
  return tokenizer::tokenizer_json({tokenizer::byte_tokens(), {}}, std::string(pattern), {"<|end|>", "<|begin|>"});
}

/// A folder "model" with this tokenizer, whose documents end with 256.
std::string make_model(const Scratch& scratch, const std::string& json, const std::string& name = "model") {
  scratch.write(name + "/tokenizer_config.json", "{\"eos_token\": \"<|end|>\"}");
  scratch.write(name + "/tokenizer.json", json);
  return scratch.at(name);
}

struct Corpus : ::testing::Test {
  Scratch scratch;
  TokenizeResult run(const std::string& tokenizer, const std::vector<std::string>& texts, const std::string& end = "") {
    fs::remove_all(scratch.at("text"));
    write_corpus(scratch, texts);
    return tokenize({scratch.at("text/*.txt")}, scratch.at("data"), {.tokenizer = tokenizer, .end_of_document = end, .force = true});
  }
  std::vector<std::int32_t> ids() { return all_tokens(Dataset(scratch.at("data"))); }
};

TEST_F(Corpus, ADatasetKeepsItsTokenizerAndItsIdentity) {
  run(make_model(scratch, small_json()), {"ab", "c"});
  const Dataset dataset(scratch.at("data"));
  EXPECT_EQ(dataset.tokenizer(), tokenizer::identity_of(small_json()));
  EXPECT_EQ(read_manifest(scratch.at("data")).tokenizer, dataset.tokenizer());
  EXPECT_EQ(bytes_of(scratch.at("data/tokenizer.json")), small_json());
  EXPECT_EQ(bytes_of(scratch.at("data/tokenizer_config.json")), "{\"eos_token\": \"<|end|>\"}");
  EXPECT_EQ(dataset.shards()[0].header().separator, 256u);
  const auto opened = dataset.open_tokenizer();
  EXPECT_EQ(opened->name(), dataset.tokenizer());
  EXPECT_EQ(opened->decode(all_tokens(dataset)), "abc");
}

TEST_F(Corpus, AnotherTokenizerReplacesTheFilesOfTheFirst) {
  run(make_model(scratch, small_json()), {"ab"});
  const std::string other = small_json(tokenizer::byte_level_pattern);
  run(scratch.write("alone/tokenizer.json", other), {"ab"}, "<|begin|>");
  EXPECT_EQ(bytes_of(scratch.at("data/tokenizer.json")), other);
  EXPECT_FALSE(fs::exists(scratch.at("data/tokenizer_config.json")));
  EXPECT_EQ(ids().back(), 257);
  run("byte", {"ab"});
  EXPECT_FALSE(fs::exists(scratch.at("data/tokenizer.json")));
  EXPECT_EQ(Dataset(scratch.at("data")).open_tokenizer()->name(), "byte");
}

TEST_F(Corpus, AMissingOrForeignTokenizerIsNamedWhenItIsNeeded) {
  run(make_model(scratch, small_json()), {"ab"});
  scratch.write("data/tokenizer.json", small_json(tokenizer::byte_level_pattern));
  const Dataset dataset(scratch.at("data"));
  EXPECT_TRUE(has(error_of<DataError>([&] { dataset.open_tokenizer(); }), "it must be the tokenizer bpe:"));
  fs::remove(scratch.at("data/tokenizer.json"));
  EXPECT_TRUE(has(error_of<DataError>([&] { dataset.open_tokenizer(); }), "is missing"));
}

TEST_F(Corpus, AModelWithAnotherTokenizerIsRefusedAndOneWithoutIsUnknown) {
  const std::string model = make_model(scratch, small_json());
  run(model, {"ab"});
  const Dataset dataset(scratch.at("data"));
  EXPECT_TRUE(require_same_tokenizer(dataset, model, 258));
  EXPECT_FALSE(require_same_tokenizer(dataset, scratch.at("text"), 258));
  EXPECT_FALSE(require_same_tokenizer(dataset, scratch.at("text"), 257)) << "these ids are not bytes";
  const std::string other = make_model(scratch, small_json(tokenizer::byte_level_pattern), "other");
  const std::string refusal = error_of<ConfigError>([&] { require_same_tokenizer(dataset, other, 258); });
  EXPECT_TRUE(has(refusal, dataset.tokenizer()) && has(refusal, "octet tokenize --tokenizer")) << refusal;
  run("byte", {"ab"});
  const Dataset bytes(scratch.at("data"));
  EXPECT_TRUE(require_same_tokenizer(bytes, scratch.at("text"), 257));
  EXPECT_FALSE(require_same_tokenizer(bytes, scratch.at("text"), 258));
  EXPECT_TRUE(has(error_of<ConfigError>([&] { require_same_tokenizer(bytes, model, 258); }), "made with the byte tokenizer"));
}

TEST_F(Corpus, TheTemplateSurroundsEachDocumentAndTheEndComesOnce) {
  json::Value source = json::parse({.text = small_json(), .file = "small"});
  const json::Value post =
      json::parse({.text = R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"b"}},{"Sequence":{"id":"A"}},
    {"SpecialToken":{"id":"e"}}],"special_tokens":{"b":{"ids":[257]},"e":{"ids":[256]}}})",
                   .file = "post"});
  source.set("post_processor", post);
  const auto a = std::int32_t('a' - '!'), b = a + 1;
  run(make_model(scratch, source.dump()), {"ab", "b"});
  EXPECT_EQ(ids(), (std::vector<std::int32_t>{257, a, b, 256, 257, b, 256}));
  run(make_model(scratch, source.dump()), {"a"}, "<|begin|>");
  EXPECT_EQ(ids(), (std::vector<std::int32_t>{257, a, 256, 257}));
}

TEST_F(Corpus, TokensAndBytesThatTheTextShouldNotHaveAreCounted) {
  const TokenizeResult result = run(make_model(scratch, small_json()), {"a<|end|>b<|end|>", "\xff\xc3z", "plain"});
  EXPECT_EQ(result.separators, 2u);
  EXPECT_EQ(result.replaced, 2u);
  EXPECT_EQ(result.documents, 3u);
}

TEST_F(Corpus, LargeDocumentsInPiecesHaveTheIdsOfTheWholeText) {
  std::string text;
  for (int i = 0; text.size() < 3'500'000; ++i) text += i % 11 == 0 ? "\n\nword" : i % 7 == 0 ? "\nWort" : " word" + std::to_string(i);
  const std::string model = make_model(scratch, small_json());
  run(model, {text, "x"});
  std::vector<std::int32_t> wanted;
  const auto opened = tokenizer::open_tokenizer(model);
  opened->encode(text, wanted);
  wanted.insert(wanted.end(), {256, 'x' - '!', 256});
  EXPECT_TRUE(ids() == wanted);
}

TEST_F(Corpus, ATokenizerThatDoesNotSayHowDocumentsEndIsRefused) {
  const std::string file = scratch.write("alone/tokenizer.json", small_json());
  EXPECT_TRUE(has(error_of<ConfigError>([&] { run(file, {"a"}); }), "--end-of-document"));
  EXPECT_FALSE(fs::exists(scratch.at("data")));
}

}  // namespace
}  // namespace octet::data
