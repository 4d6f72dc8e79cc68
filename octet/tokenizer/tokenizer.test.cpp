#include "octet/tokenizer/tokenizer.hpp"

#include <gtest/gtest.h>

#include "octet/base/checksum.hpp"
#include "octet/base/error.hpp"
#include "octet/tokenizer/bpe_training.hpp"
#include "octet/tokenizer/pre_tokenizer.hpp"
#include "octet/tokenizer/text_stream.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::tokenizer {
namespace {

using testing::error_of;
using testing::has;
using testing::Scratch;

std::string small_json() { return tokenizer_json({byte_tokens(), {}}, std::string(default_pattern), {"<|end|>", "<|other|>"}); }

TEST(Tokenizers, AreFoundByNameAndATypoGetsASuggestion) {
  EXPECT_EQ(open_tokenizer("byte")->name(), "byte");
  EXPECT_EQ(error_of<ConfigError>([] { open_tokenizer("bytes"); }),
            "there is no tokenizer 'bytes', did you mean 'byte'?; name a tokenizer.json, a folder that has one, or `byte`");
  EXPECT_TRUE(has(error_of<ConfigError>([] { open_tokenizer("\x1bx-tokenizer"); }), "there is no tokenizer '\\x1bx-tokenizer';"));
  const Scratch scratch;
  EXPECT_TRUE(has(error_of<ConfigError>([&] { open_tokenizer(scratch.at("")); }), "has no tokenizer.json"));
}

TEST(Tokenizers, AFileAndItsFolderAreTheSameTokenizerWithTheIdentityOfItsBytes) {
  const Scratch scratch;
  const std::string file = scratch.write("t/tokenizer.json", small_json());
  const auto a = open_tokenizer(file), b = open_tokenizer(scratch.at("t"));
  EXPECT_EQ(a->name(), b->name());
  EXPECT_EQ(a->name(), "bpe:" + to_text(data::checksum_of(small_json())));
  EXPECT_EQ(identity_in(scratch.at("t")), a->name());
  EXPECT_EQ(identity_in(scratch.at("")), std::nullopt);
  EXPECT_EQ(a->source(), small_json());
  EXPECT_LE(a->name().size(), 63u);
}

TEST(Tokenizers, TheEndOfADocumentComesFromTheOptionTheConfigurationOrTheModel) {
  const Scratch scratch;
  const std::string file = scratch.write("tokenizer.json", small_json());
  EXPECT_EQ(open_tokenizer(file)->document_separator(), std::nullopt);
  scratch.write("config.json", R"({"eos_token_id": 3})");
  EXPECT_EQ(open_tokenizer(file)->document_separator(), 3);
  scratch.write("generation_config.json", R"({"eos_token_id": [257, 256]})");
  EXPECT_EQ(open_tokenizer(file)->document_separator(), 257);
  scratch.write("tokenizer_config.json", R"({"eos_token": {"content": "<|end|>", "lstrip": false}})");
  EXPECT_EQ(open_tokenizer(file)->document_separator(), 256);
  EXPECT_EQ(open_tokenizer(file, {.end_of_document = "<|other|>"})->document_separator(), 257);
  EXPECT_TRUE(has(error_of<ConfigError>([&] { open_tokenizer(file, {.end_of_document = "<|none|>"}); }), "has no such token"));
  scratch.write("tokenizer_config.json", R"({"eos_token": "<|none|>"})");
  EXPECT_TRUE(has(error_of<DataError>([&] { open_tokenizer(file); }), "--end-of-document"));
}

TEST(Tokenizers, AnEmptyContextIsTheBeginTokenOrTheTemplatesOrTheEnd) {
  const Scratch scratch;
  const std::string file = scratch.write("tokenizer.json", small_json());
  EXPECT_EQ(open_tokenizer("byte")->empty_context(), 256);
  EXPECT_EQ(open_tokenizer(file)->empty_context(), std::nullopt);
  scratch.write("tokenizer_config.json", R"({"eos_token": "<|end|>", "bos_token": null})");
  EXPECT_EQ(open_tokenizer(file)->empty_context(), 256);
  scratch.write("tokenizer_config.json", R"({"eos_token": "<|end|>", "bos_token": "<|other|>"})");
  EXPECT_EQ(open_tokenizer(file)->empty_context(), 257);
  EXPECT_EQ(open_tokenizer(file)->document_separator(), 256);
}

TEST(TextStream, ShowsCharactersWhenTheyAreComplete) {
  const Scratch scratch;
  const auto tokenizer = open_tokenizer(scratch.write("tokenizer.json", small_json()));
  std::vector<std::int32_t> ids;
  const std::string text = "a\u00e9\u4e2d\U0001f600z";
  tokenizer->encode(text, ids);
  ASSERT_EQ(ids.size(), text.size());
  TextStream stream(*tokenizer);
  std::vector<std::string> shown;
  for (const std::int32_t id : ids) shown.push_back(stream.next(id));
  EXPECT_EQ(shown, (std::vector<std::string>{"a", "", "\u00e9", "", "", "\u4e2d", "", "", "", "\U0001f600", "z"}));
  EXPECT_EQ(stream.next(ids[1]), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, ALongTextIsTheDecodedWhole) {
  const Scratch scratch;
  const auto tokenizer = open_tokenizer(scratch.write("tokenizer.json", small_json()));
  std::string text, shown;
  for (int i = 0; i < 300; ++i) text += i % 7 == 0 ? "\u4e2d" : i % 5 == 0 ? " " : "x";
  std::vector<std::int32_t> ids;
  tokenizer->encode(text, ids);
  const std::size_t prompt = 31;
  TextStream stream(*tokenizer, std::span(ids).first(prompt));
  for (const std::int32_t id : std::span(ids).subspan(prompt)) shown += stream.next(id);
  shown += stream.finish();
  EXPECT_EQ(shown, text.substr(prompt));
}

}  // namespace
}  // namespace octet::tokenizer
