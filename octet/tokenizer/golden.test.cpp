#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "octet/json/fields.hpp"
#include "octet/tokenizer/bpe_tokenizer.hpp"

// Ids and decoded texts of small tokenizers of every supported part against PyPI `tokenizers`: tests/golden/tokenizers.jsonl, which
// tests/peers/tokenizers/golden.py made.

namespace octet::tokenizer {
namespace {

using Ids = std::vector<std::int32_t>;

Ids ids_of(const json::Fields& fields, std::string_view key) {
  Ids ids;
  for (const std::int64_t id : fields.integers(key, 0)) ids.push_back(std::int32_t(id));
  return ids;
}

/// `base` with the keys of `change`; those of "model" are changed one by one.
json::Value changed(json::Value base, const json::Object& change) {
  for (const json::Member& member : change) {
    json::Value value = member.value;
    if (member.name == "model") {
      value = *base.find("model");
      for (const json::Member& key : *member.value.object()) value.set(key.name, key.value);
    }
    base.set(member.name, std::move(value));
  }
  return base;
}

void check_case(const BpeTokenizer& tokenizer, const json::Fields& wanted, const std::string& change) {
  const std::string& text = wanted.text("text");
  Ids ids, whole(tokenizer.document_prefix().begin(), tokenizer.document_prefix().end());
  EXPECT_EQ(tokenizer.encode(text, ids), 0u);
  EXPECT_EQ(ids, ids_of(wanted, "ids")) << change << "\n" << text;
  whole.insert(whole.end(), ids.begin(), ids.end());
  whole.insert(whole.end(), tokenizer.document_suffix().begin(), tokenizer.document_suffix().end());
  EXPECT_EQ(whole, ids_of(wanted, wanted.has("whole") ? "whole" : "ids")) << change << "\n" << text;
  EXPECT_EQ(tokenizer.decode(whole), wanted.text("decoded")) << change << "\n" << text;
}

TEST(Golden, TheIdsAndTextsOfEveryPartAreThoseOfThePackage) {
  std::ifstream file(OCTET_SOURCE_DIR "/tests/golden/tokenizers.jsonl");
  std::map<std::string, json::Value> bases;
  std::size_t cases = 0;
  for (std::string line; std::getline(file, line);) {
    const json::Value root = json::parse({.text = line, .file = "tokenizers.jsonl"});
    const json::Fields fields(root, "tokenizers.jsonl");
    if (fields.has("base")) {
      bases[fields.text("base")] = fields.value("tokenizer");
      continue;
    }
    const std::string change = fields.value("change").dump();
    const BpeTokenizer tokenizer(changed(bases.at(fields.text("set")), *fields.value("change").object()).dump(), change);
    for (const json::Fields& wanted : fields.objects("cases")) check_case(tokenizer, wanted, change), ++cases;
  }
  EXPECT_EQ(bases.size(), 2u);
  EXPECT_GT(cases, 1000u);
}

}  // namespace
}  // namespace octet::tokenizer
