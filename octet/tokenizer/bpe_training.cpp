#include "octet/tokenizer/bpe_training.hpp"

#include <algorithm>
#include <queue>

#include "octet/base/check.hpp"
#include "octet/json/value.hpp"
#include "octet/tokenizer/byte_alphabet.hpp"
#include "octet/tokenizer/unicode.hpp"

namespace octet::tokenizer {
namespace {

using Pair = std::pair<std::int32_t, std::int32_t>;

struct Word {
  std::vector<std::int32_t> ids;
  std::int64_t count = 0;
};

class Training {
 public:
  Training(const std::unordered_map<std::string, std::uint64_t>& words, std::uint64_t least_count)
      : least_(std::max<std::uint64_t>(least_count, 1)) {
    result_.tokens = byte_tokens();
    std::vector<std::int32_t> id_of_byte(256);
    for (std::size_t i = 0; i < 256; ++i) {
      id_of_byte[static_cast<unsigned char>(result_.tokens[i][0])] = std::int32_t(i);
      id_of_.emplace(result_.tokens[i], std::int32_t(i));
    }
    words_.reserve(words.size());
    for (const auto& [text, count] : words) {
      Word& word = words_.emplace_back();
      word.count = std::int64_t(count);
      for (const char c : text) word.ids.push_back(id_of_byte[static_cast<unsigned char>(c)]);
    }
    for (std::size_t w = 0; w < words_.size(); ++w)
      for (std::size_t i = 0; i + 1 < words_[w].ids.size(); ++i) change({words_[w].ids[i], words_[w].ids[i + 1]}, words_[w].count, w);
    push_changed();
  }

  /// Adds one merge; false when no pair is frequent enough.
  bool step() {
    while (!queue_.empty()) {
      const Entry top = queue_.top();
      queue_.pop();
      Counted& counted = pairs_.at(key_of(top.pair));
      if (top.count != counted.count) {
        if (counted.count > 0) queue_.push({counted.count, top.pair});
        continue;
      }
      if (top.count < std::int64_t(least_)) return false;
      merge(top.pair, counted);
      return true;
    }
    return false;
  }

  std::size_t tokens() const { return result_.tokens.size(); }
  TrainedBpe result() { return std::move(result_); }

 private:
  struct Entry {
    std::int64_t count;
    Pair pair;
    friend bool operator<(const Entry& a, const Entry& b) { return a.count != b.count ? a.count < b.count : a.pair > b.pair; }
  };
  struct Counted {
    std::int64_t count = 0;
    std::vector<std::uint32_t> words;  // that may contain the pair, perhaps several times
  };
  static std::uint64_t key_of(Pair pair) { return std::uint64_t(std::uint32_t(pair.first)) << 32 | std::uint32_t(pair.second); }

  void change(Pair pair, std::int64_t by, std::size_t word) {
    Counted& counted = pairs_[key_of(pair)];
    counted.count += by;
    if (by <= 0) return;
    if (counted.words.empty() || counted.words.back() != word) counted.words.push_back(std::uint32_t(word));
    changed_.push_back(pair);
  }

  void push_changed() {
    std::sort(changed_.begin(), changed_.end());
    changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
    for (const Pair& pair : changed_)
      if (const auto count = pairs_.at(key_of(pair)).count; count > 0) queue_.push({count, pair});
    changed_.clear();
  }

  void merge(Pair pair, Counted& counted) {
    std::string text = result_.tokens[std::size_t(pair.first)] + result_.tokens[std::size_t(pair.second)];
    const auto [at, made] = id_of_.try_emplace(text, std::int32_t(result_.tokens.size()));
    if (made) result_.tokens.push_back(std::move(text));
    result_.merges.push_back(pair);
    std::vector<std::uint32_t> in = std::move(counted.words);
    counted.words = {}, counted.count = 0;
    std::sort(in.begin(), in.end());
    in.erase(std::unique(in.begin(), in.end()), in.end());
    for (const std::uint32_t w : in) merge_in(w, pair, at->second);
    push_changed();
  }

  /// Replaces the pair in a word, from left to right.
  void merge_in(std::uint32_t w, Pair pair, std::int32_t id) {
    auto& ids = words_[w].ids;
    const std::int64_t count = words_[w].count;
    std::size_t out = 0;
    for (std::size_t i = 0; i < ids.size(); ++i, ++out) {
      if (i + 1 == ids.size() || ids[i] != pair.first || ids[i + 1] != pair.second) {
        ids[out] = ids[i];
        continue;
      }
      if (out > 0) {
        const std::int32_t before = ids[out - 1];
        if (Pair(before, pair.first) != pair) change({before, pair.first}, -count, w);
        change({before, id}, count, w);
      }
      if (i + 2 < ids.size()) {
        const std::int32_t after = ids[i + 2];
        if (Pair(pair.second, after) != pair) change({pair.second, after}, -count, w);
        change({id, after}, count, w);
      }
      ids[out] = id;
      ++i;
    }
    ids.resize(out);
  }

  std::uint64_t least_;
  TrainedBpe result_;
  std::unordered_map<std::string, std::int32_t> id_of_;
  std::vector<Word> words_;
  std::unordered_map<std::uint64_t, Counted> pairs_;
  std::priority_queue<Entry> queue_;
  std::vector<Pair> changed_;  // pairs whose count has grown
};

json::Value added_token(const std::string& content, std::size_t id) {
  json::Value token = json::Object();
  token.set("id", id).set("content", content).set("single_word", false).set("lstrip", false);
  return token.set("rstrip", false).set("normalized", false).set("special", true);
}

json::Value byte_level() {
  json::Value value = json::Object();
  return value.set("type", "ByteLevel").set("add_prefix_space", false).set("trim_offsets", true).set("use_regex", false);
}

json::Value pre_tokenizer(const std::string& pattern) {
  json::Value regex = json::Object(), split = json::Object(), sequence = json::Object();
  regex.set("Regex", pattern);
  split.set("type", "Split").set("pattern", regex).set("behavior", "Isolated").set("invert", false);
  return sequence.set("type", "Sequence").set("pretokenizers", json::Array{split, byte_level()});
}

json::Value model(const TrainedBpe& bpe) {
  json::Object vocabulary;
  for (std::size_t id = 0; id < bpe.tokens.size(); ++id) vocabulary.push_back({token_of_bytes(bpe.tokens[id]), id});
  json::Array merges;
  for (const auto& [left, right] : bpe.merges)
    merges.push_back(json::Array{token_of_bytes(bpe.tokens[std::size_t(left)]), token_of_bytes(bpe.tokens[std::size_t(right)])});
  json::Value value = json::Object();
  value.set("type", "BPE").set("dropout", {}).set("unk_token", {}).set("continuing_subword_prefix", {}).set("end_of_word_suffix", {});
  value.set("fuse_unk", false).set("byte_fallback", false).set("ignore_merges", false);
  return value.set("vocab", std::move(vocabulary)).set("merges", std::move(merges));
}

}  // namespace

std::vector<std::string> byte_tokens() {
  std::vector<std::pair<char32_t, unsigned char>> order;
  for (int byte = 0; byte < 256; ++byte)
    order.emplace_back(first_character(character_of(static_cast<unsigned char>(byte))).code, static_cast<unsigned char>(byte));
  std::sort(order.begin(), order.end());
  std::vector<std::string> tokens;
  for (const auto& [code, byte] : order) tokens.emplace_back(1, char(byte));
  return tokens;
}

TrainedBpe train_bpe(const std::unordered_map<std::string, std::uint64_t>& words, std::size_t size, std::uint64_t least_count,
                     const std::function<void(std::size_t)>& progress) {
  check(size >= 256, "a byte-level vocabulary has at least 256 tokens, got {}", size);
  Training training(words, least_count);
  constexpr std::size_t often = 256;
  for (std::size_t merges = 0; training.tokens() < size && training.step(); ++merges)
    if (progress && merges % often == 0) progress(training.tokens());
  return training.result();
}

std::string tokenizer_json(const TrainedBpe& bpe, const std::string& pattern, const std::vector<std::string>& special) {
  json::Array added;
  for (const std::string& token : special) added.push_back(added_token(token, bpe.tokens.size() + added.size()));
  json::Value root = json::Object();
  root.set("version", "1.0").set("truncation", {}).set("padding", {}).set("added_tokens", std::move(added)).set("normalizer", {});
  root.set("pre_tokenizer", pre_tokenizer(pattern)).set("post_processor", byte_level()).set("decoder", byte_level());
  root.set("model", model(bpe));
  return root.dump(json::Layout::indented) + "\n";
}

}  // namespace octet::tokenizer
