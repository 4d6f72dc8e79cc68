#include "octet/tokenizer/bpe_tokenizer.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <thread>

#include "octet/base/error.hpp"
#include "octet/tokenizer/bpe_training.hpp"
#include "octet/tokenizer/word_counts.hpp"
#include "tests/testing/scratch.hpp"

namespace octet::tokenizer {
namespace {

using testing::error_of;
using testing::has;
using Ids = std::vector<std::int32_t>;

/// Words, blanks and characters of several scripts.
std::string some_text(unsigned seed, std::size_t bytes) {
  std::mt19937 random(seed);
  const std::vector<std::string> pieces = {" the",
                                           " of",
                                           "ing",
                                           "\n",
                                           "\n\n",
                                           " ",
                                           "  ",
                                           "a",
                                           "b",
                                           " 12",
                                           "3",
                                           ".",
                                           "!?",
                                           "'s",
                                           "'LL",
                                           "\t",
                                           "\r\n",
                                           "é",
                                           " größe",
                                           "中",
                                           "文字",
                                           "Быстрая",
                                           " лиса",
                                           "-",
                                           "<|end|>",
                                           "\xff",
                                           "👍🏽",
                                           " x",
                                           "Z q",
                                           "\n ",
                                           "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
  std::string text;
  while (text.size() < bytes) text += pieces[random() % pieces.size()];
  return text;
}

std::unordered_map<std::string, std::uint64_t> words_of(const std::string& text) {
  const Regex pattern(default_pattern, "default", "pattern");
  WordCounts words(pattern);
  words.add(text);
  return words.counts();
}

const TrainedBpe& trained() {
  static const TrainedBpe made = train_bpe(words_of(some_text(1, 100'000)), 400, 1);
  return made;
}

json::Value trained_json(std::string_view pattern = default_pattern) {
  return json::parse({.text = tokenizer_json(trained(), std::string(pattern), {"<|end|>"}), .file = "trained"});
}

TEST(BpeTokenizer, DecodesItsOwnIdsOfAnyValidText) {
  const BpeTokenizer tokenizer(trained_json().dump(), "trained");
  std::string text = some_text(2, 50'000);
  std::erase(text, '\xff');
  Ids ids;
  EXPECT_EQ(tokenizer.encode(text, ids), 0u);
  std::string special;
  for (std::size_t at = 0, found = 0; found != text.npos; at = found + 7) {
    found = text.find("<|end|>", at);
    special += text.substr(at, found - at);
  }
  EXPECT_EQ(tokenizer.decode(ids), special) << "special tokens have no text";
  EXPECT_LT(ids.size(), text.size() * 3 / 4);
}

/// Encodes in pieces of about `bytes`.
Ids in_pieces(const Tokenizer& tokenizer, std::string_view text, std::size_t bytes, std::size_t& cuts) {
  Ids ids;
  Position position = Position::start;
  while (text.size() > bytes) {
    const std::size_t cut = tokenizer.last_cut(text.substr(0, bytes));
    if (cut == 0) break;
    tokenizer.encode(text.substr(0, cut), ids, position);
    text.remove_prefix(cut), position = Position::continued, ++cuts;
  }
  tokenizer.encode(text, ids, position);
  return ids;
}

json::Value parsed(std::string_view text) { return json::parse({.text = text, .file = "part"}); }

/// A vocabulary of characters, with merges of the trained one where its bytes are ASCII letters or spaces.
json::Value character_model() {
  json::Object vocabulary;
  json::Array merges;
  const auto add = [&](const std::string& token) {
    for (const auto& member : vocabulary)
      if (member.name == token) return;
    vocabulary.push_back({token, vocabulary.size()});
  };
  add("<unk>"), add("\u2581");
  for (char c = 'a'; c <= 'z'; ++c) add(std::string(1, c));
  for (const char* const token : {"th", "\u2581th", "the", "\u2581the", "in", "ing", "\u2581o", "\u2581of", "\u2581\u2581"}) add(token);
  for (const auto& [l, r] : std::vector<std::pair<const char*, const char*>>{{"t", "h"},
                                                                             {"\u2581", "th"},
                                                                             {"th", "e"},
                                                                             {"\u2581th", "e"},
                                                                             {"i", "n"},
                                                                             {"in", "g"},
                                                                             {"\u2581", "o"},
                                                                             {"\u2581o", "f"},
                                                                             {"\u2581", "\u2581"}})
    merges.push_back(json::Array{l, r});
  json::Value model = json::Object();
  return model.set("type", "BPE").set("unk_token", "<unk>").set("fuse_unk", true).set("vocab", vocabulary).set("merges", merges);
}

TEST(BpeTokenizer, PiecesThatEndAtItsCutsGiveTheIdsOfTheWholeText) {
  const std::string gpt2 = R"({"type":"ByteLevel","add_prefix_space":true,"use_regex":true})";
  const std::string metaspace = R"({"type":"Metaspace","replacement":"\u2581","prepend_scheme":"first","split":)";
  std::vector<json::Value> tokenizers(6, trained_json());
  for (const std::string_view pattern : known_patterns()) tokenizers.push_back(trained_json(pattern));
  tokenizers[1].set("pre_tokenizer", parsed(gpt2));
  tokenizers[2].set("normalizer", parsed(R"({"type":"NFC"})"));
  tokenizers[2].set("pre_tokenizer",
                    parsed(R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},)" + gpt2 + "]}"));
  for (const std::size_t i : {3u, 4u, 5u})
    tokenizers[i].set("model", character_model()).set("decoder", {}).set("post_processor", {}).set("added_tokens", {});
  tokenizers[3].set("pre_tokenizer", parsed(metaspace + "true}"));
  tokenizers[4].set("pre_tokenizer", parsed(metaspace + "false}"));
  tokenizers[5]
      .set("pre_tokenizer", {})
      .set("normalizer", parsed(R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"\u2581"},
    {"type":"Replace","pattern":{"String":" "},"content":"\u2581"}]})"));
  for (const json::Value& source : tokenizers) {
    const BpeTokenizer tokenizer(source.dump(), "tokenizer");
    std::size_t cuts = 0;
    for (unsigned seed = 0; seed < 100; ++seed) {
      const std::string text = some_text(seed, 3000) + " the of" + some_text(seed + 1000, 1000);
      Ids whole;
      tokenizer.encode(text, whole);
      ASSERT_EQ(in_pieces(tokenizer, text, 300, cuts), whole) << seed;
    }
    EXPECT_GT(cuts, 200u);
  }
}

TEST(BpeTokenizer, ATextIsNotCutWhereARuleIsUnknown) {
  json::Value source = trained_json(R"([a-z ]+|.|\n)");
  EXPECT_EQ(BpeTokenizer(source.dump(), "unknown pattern").last_cut("the of the"), 0u);
  source = trained_json();
  EXPECT_EQ(BpeTokenizer(source.dump(), "known pattern").last_cut("the of the"), 6u);
  source.set("added_tokens", parsed(R"({"a":[{"id":400,"content":"f t","normalized":false,"special":false}]})").find("a")[0]);
  EXPECT_EQ(BpeTokenizer(source.dump(), "token with a space").last_cut("the of the"), 0u);
  source = trained_json();
  source.set("normalizer", parsed(R"({"type":"Strip","strip_left":true,"strip_right":true})"));
  EXPECT_EQ(BpeTokenizer(source.dump(), "stripped").last_cut("the of the"), 0u);
  source = trained_json();
  source.set("model", character_model()).set("added_tokens", {}).set("pre_tokenizer", {});
  EXPECT_EQ(BpeTokenizer(source.dump(), "spaces that are not marked").last_cut("the of the"), 0u);
  source.set("normalizer", parsed(R"({"type":"Replace","pattern":{"String":" "},"content":"\u2581"})"));
  EXPECT_EQ(BpeTokenizer(source.dump(), "marked spaces").last_cut("the of the"), 6u);
}

TEST(BpeTokenizer, ThreadsShareATokenizer) {
  const BpeTokenizer tokenizer(trained_json().dump(), "trained");
  const std::string text = some_text(3, 20'000);
  Ids wanted;
  tokenizer.encode(text, wanted);
  std::vector<Ids> got(4);
  {
    std::vector<std::jthread> threads;
    for (Ids& ids : got)
      threads.emplace_back([&] {
        for (int i = 0; i < 5; ++i) ids.clear(), tokenizer.encode(text, ids);
      });
  }
  for (const Ids& ids : got) EXPECT_EQ(ids, wanted);
}

/// The definition: the leftmost pair of the lowest rank is merged until there is none.
std::string merged_by_definition(const std::string& word) {
  std::map<std::pair<std::string, std::string>, std::size_t> ranks;
  for (const auto& [l, r] : trained().merges)
    ranks.emplace(std::pair(trained().tokens[std::size_t(l)], trained().tokens[std::size_t(r)]), ranks.size());
  std::vector<std::string> parts;
  for (const char c : word) parts.emplace_back(1, c);
  while (true) {
    std::size_t best = ranks.size(), at = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i)
      if (const auto rank = ranks.find({parts[i], parts[i + 1]}); rank != ranks.end() && rank->second < best) best = rank->second, at = i;
    if (best == ranks.size()) break;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + std::ptrdiff_t(at) + 1);
  }
  std::string text;
  for (const std::string& part : parts) text += part + "|";
  return text;
}

TEST(BpeTokenizer, PartsOfAnyLengthAreMergedByTheDefinition) {
  const BpeTokenizer tokenizer(trained_json().dump(), "trained");
  std::mt19937 random(9);
  for (std::size_t n = 1; n < 200; ++n) {
    std::string word, got;
    while (word.size() < n) word += std::vector<std::string>{"the", "ing", "a", "aa", "of", "x"}[random() % 6];
    Ids ids;
    tokenizer.encode(word, ids);
    for (const std::int32_t id : ids) got += std::string(tokenizer.token(id)) + "|";
    ASSERT_EQ(got, merged_by_definition(word));
  }
}

TEST(BpeTokenizer, AMillionLettersWithoutABorderTakeLessThanQuadraticTime) {
  const BpeTokenizer tokenizer(trained_json().dump(), "trained");
  Ids ids;
  tokenizer.encode(std::string(1'000'000, 'a'), ids);
  EXPECT_EQ(tokenizer.decode(ids), std::string(1'000'000, 'a'));
}

TEST(BpeTokenizer, UnsupportedPartsAreRefusedByName) {
  const auto refusal = [](std::string_view key, std::string_view value) {
    json::Value source = trained_json();
    source.set(key, parsed("{\"x\":" + std::string(value) + "}").find("x")[0]);
    return error_of<DataError>([&] { BpeTokenizer(source.dump(), "tokenizer.json"); });
  };
  const std::vector<std::array<std::string, 3>> table = {
      {"normalizer", R"({"type":"BertNormalizer"})", "BertNormalizer"},
      {"pre_tokenizer", R"({"type":"Whitespace"})", "Whitespace"},
      {"pre_tokenizer", R"({"type":"Sequence","pretokenizers":[{"type":"ByteLevel","add_prefix_space":false},{"type":"Digits"}]})",
       "last pre-tokenizer"},
      {"post_processor", R"({"type":"RobertaProcessing"})", "RobertaProcessing"},
      {"decoder", R"({"type":"WordPiece"})", "WordPiece"},
      {"model", R"({"type":"Unigram"})", "Unigram"},
      {"model", R"({"type":"BPE","dropout":0.5,"vocab":{},"merges":[]})", "dropout"},
      {"model", R"({"type":"BPE","continuing_subword_prefix":"##","vocab":{},"merges":[]})", "continuing_subword_prefix"},
      {"model", R"({"type":"BPE","vocab":{"a":0,"b":0},"merges":[]})", "different ids"},
      {"model", R"({"type":"BPE","vocab":{"a":0,"b":1},"merges":["a b"]})", "merges"},
      {"model", R"({"type":"BPE","vocab":{"a":0},"merges":["a"]})", "merges"},
      {"model", R"({"type":"BPE","vocab":{"a":-1},"merges":[]})", "vocab"},
      {"added_tokens", R"([{"id":999,"content":"<x>"}])", "must have the id 400"},
      {"added_tokens", R"([{"id":400,"content":""}])", "1 to 1024 bytes"},
      {"added_tokens", R"([{"id":400,"content":"x","color":"red"}])", "color"},
      {"pre_tokenizer", R"({"type":"Split","pattern":{"Regex":"^a"},"behavior":"Isolated","invert":false})", "the anchor ^"},
      {"pre_tokenizer", R"({"type":"Split","pattern":{"String":""},"behavior":"Isolated"})", "String"},
      {"something", "1", "something"},
  };
  for (const auto& [key, value, part] : table) EXPECT_TRUE(has(refusal(key, value), part)) << value << "\n" << refusal(key, value);
  for (const auto& [key, value, part] : table) EXPECT_TRUE(has(refusal(key, value), "tokenizer.json")) << value;
}

/// The definition, without any index: counts all pairs again for each merge.
TrainedBpe naive(const std::unordered_map<std::string, std::uint64_t>& words, std::size_t size) {
  TrainedBpe out{byte_tokens(), {}};
  std::vector<std::pair<Ids, std::uint64_t>> all;
  for (const auto& [word, count] : words) {
    Ids ids;
    for (const char c : word)
      ids.push_back(std::int32_t(std::find(out.tokens.begin(), out.tokens.end(), std::string(1, c)) - out.tokens.begin()));
    all.emplace_back(ids, count);
  }
  while (out.tokens.size() < size) {
    std::map<std::pair<std::int32_t, std::int32_t>, std::uint64_t> pairs;
    for (const auto& [ids, count] : all)
      for (std::size_t i = 0; i + 1 < ids.size(); ++i) pairs[{ids[i], ids[i + 1]}] += count;
    if (pairs.empty()) break;
    const auto best = std::max_element(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->first;
    const std::string text = out.tokens[std::size_t(best.first)] + out.tokens[std::size_t(best.second)];
    auto at = std::find(out.tokens.begin(), out.tokens.end(), text);
    const auto id = std::int32_t(at - out.tokens.begin());
    if (at == out.tokens.end()) out.tokens.push_back(text);
    out.merges.push_back(best);
    for (auto& [ids, count] : all) {
      Ids merged;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        const bool here = i + 1 < ids.size() && ids[i] == best.first && ids[i + 1] == best.second;
        merged.push_back(here ? id : ids[i]);
        i += here;
      }
      ids = merged;
    }
  }
  return out;
}

TEST(BpeTraining, IncrementalCountsChooseTheMergesOfTheDefinition) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    const auto words = words_of(some_text(seed, 3000));
    const TrainedBpe wanted = naive(words, 340), got = train_bpe(words, 340, 1);
    EXPECT_EQ(got.merges, wanted.merges);
    EXPECT_EQ(got.tokens, wanted.tokens);
  }
}

}  // namespace
}  // namespace octet::tokenizer
