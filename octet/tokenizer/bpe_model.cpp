#include "octet/tokenizer/bpe_model.hpp"

#include <algorithm>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/tokenizer/byte_alphabet.hpp"
#include "octet/tokenizer/normalizer.hpp"
#include "octet/tokenizer/unicode.hpp"

namespace octet::tokenizer {
namespace {

/// "<0x0A>"
std::string byte_token(unsigned byte) {
  constexpr const char* digits = "0123456789ABCDEF";
  return {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
}

}  // namespace

BpeModel::BpeModel(const json::Fields& fields, bool byte_level) : byte_level_(byte_level) {
  if (fields.text_or("type", "BPE") != "BPE") fields.refuse("type", "BPE (other models are not supported)");
  require_keys(fields, {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback",
                        "ignore_merges", "vocab", "merges"});
  if (fields.number_or("dropout", 0, 0, 1) != 0) fields.refuse("dropout", "null or 0, since its ids would be random");
  for (const char* const key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!fields.text_or(key, "").empty()) fields.refuse(key, "null or empty (other values are not supported)");
  byte_fallback_ = fields.boolean_or("byte_fallback", false);
  fuse_unknown_ = fields.boolean_or("fuse_unk", false);
  ignore_merges_ = fields.boolean_or("ignore_merges", false);
  read_vocabulary(fields);
  read_merges(fields);
  if (fields.has("unk_token")) {
    const std::int32_t* id = find(fields.text("unk_token"));
    if (id == nullptr) fields.refuse("unk_token", "a token of the vocabulary");
    unknown_ = *id;
  }
  byte_ids_.fill(-1);
  for (unsigned byte = 0; byte < 256; ++byte) {
    const std::string token = byte_level ? std::string(character_of(static_cast<unsigned char>(byte))) : byte_token(byte);
    if (const std::int32_t* id = find(token)) byte_ids_[byte] = *id;
  }
  if (!byte_level || !ignore_merges_) return;
  for (const auto& [token, id] : ids_)
    if (auto bytes = bytes_of_token(token)) parts_.emplace(std::move(*bytes), id);
}

void BpeModel::read_vocabulary(const json::Fields& fields) {
  const json::Object* entries = fields.value("vocab").object();
  if (entries == nullptr) fields.refuse("vocab", "an object of tokens and ids");
  ids_.reserve(entries->size());
  std::vector<bool> used;
  for (const json::Member& entry : *entries) {
    const std::int64_t* id = entry.value.integer();
    if (id == nullptr || *id < 0 || *id >= most_ids) fields.refuse_entry("vocab", format("ids from 0 to {}", most_ids - 1), entry.value);
    if (std::size_t(*id) >= used.size()) used.resize(std::size_t(*id) + 1);
    if (used[std::size_t(*id)]) fields.refuse_entry("vocab", "tokens of different ids", entry.value);
    used[std::size_t(*id)] = true;
    ids_.emplace(entry.name, std::int32_t(*id));
  }
}

void BpeModel::read_merges(const json::Fields& fields) {
  const json::Array* list = fields.value("merges").array();
  if (list == nullptr) fields.refuse("merges", "an array of pairs of tokens");
  merges_ = MergeTable(list->size());
  merge_count_ = list->size();
  std::uint32_t rank = 0;
  for (const json::Value& entry : *list) {
    const json::Array* pair = entry.array();
    if (pair != nullptr && pair->size() == 2 && (*pair)[0].text() && (*pair)[1].text()) {
      add_merge(fields, *(*pair)[0].text(), *(*pair)[1].text(), rank++);
      continue;
    }
    const std::string_view text = entry.text() ? std::string_view(*entry.text()) : std::string_view();
    const std::size_t space = text.find(' ');
    if (space == text.npos || text.find(' ', space + 1) != text.npos) fields.refuse_entry("merges", "pairs of tokens", entry);
    add_merge(fields, text.substr(0, space), text.substr(space + 1), rank++);
  }
}

void BpeModel::add_merge(const json::Fields& fields, std::string_view left, std::string_view right, std::uint32_t rank) {
  const std::string both = std::string(left).append(right);
  const std::int32_t *l = find(left), *r = find(right), *id = find(both);
  if (l == nullptr || r == nullptr || id == nullptr)
    fields.refuse_entry("merges", "pairs of tokens of the vocabulary whose joined text is one, too",
                        std::string(l == nullptr   ? left
                                    : r == nullptr ? right
                                                   : both));
  merges_.set(*l, *r, {rank, *id});
}

const std::int32_t* BpeModel::find(std::string_view token) const {
  const auto at = ids_.find(std::string(token));
  return at == ids_.end() ? nullptr : &at->second;
}

bool BpeModel::divides_before(std::string_view mark) const {
  if (ignore_merges_ || find(mark) == nullptr) return false;
  for (const auto& [token, id] : ids_)
    for (std::size_t i = token.find(mark, 1); i != token.npos; i = token.find(mark, i + 1))
      if (!std::string_view(token).substr(0, i).ends_with(mark)) return false;
  return true;
}

bool BpeModel::begin_bytes(std::string_view character, std::vector<std::int32_t>& ids) const {
  for (const char c : character)
    if (byte_ids_[static_cast<unsigned char>(c)] < 0) return false;
  for (const char c : character) ids.push_back(byte_ids_[static_cast<unsigned char>(c)]);
  return true;
}

/// Appends the ids of single characters. An unknown character waits for the next one, with which it may be fused.
void BpeModel::begin(std::string_view part, std::vector<std::int32_t>& ids) const {
  bool waiting = false;
  const auto unknown = [&] {
    if (unknown_ < 0) return;
    if (waiting && !fuse_unknown_) ids.push_back(unknown_);
    waiting = true;
  };
  const auto known = [&](std::int32_t id) {
    if (waiting) ids.push_back(unknown_);
    waiting = false;
    ids.push_back(id);
  };
  while (!part.empty()) {
    const std::size_t bytes = byte_level_ ? 1 : first_character(part).bytes;
    const std::string_view character = part.substr(0, bytes);
    part.remove_prefix(bytes);
    if (byte_level_) {
      const std::int32_t id = byte_ids_[static_cast<unsigned char>(character[0])];
      id >= 0 ? known(id) : unknown();
    } else if (const std::int32_t* id = find(character)) {
      known(*id);
    } else if (!byte_fallback_ || !begin_bytes(character, ids)) {
      unknown();
    }
  }
  if (waiting) ids.push_back(unknown_);
}

/// Quadratic in the number of ids, without other memory.
void BpeModel::merge_few(std::vector<std::int32_t>& ids, Scratch& s) const {
  std::size_t n = ids.size();
  s.ranks.resize(n);
  for (std::size_t i = 0; i + 1 < n; ++i) s.ranks[i] = merges_.find(ids[i], ids[i + 1]).rank;
  while (n > 1) {
    const auto best = std::min_element(s.ranks.begin(), s.ranks.begin() + std::ptrdiff_t(n) - 1);
    if (*best == MergeTable::none) break;
    const auto i = std::size_t(best - s.ranks.begin());
    ids[i] = merges_.find(ids[i], ids[i + 1]).id;
    std::move(ids.begin() + std::ptrdiff_t(i) + 2, ids.begin() + std::ptrdiff_t(n), ids.begin() + std::ptrdiff_t(i) + 1);
    std::move(s.ranks.begin() + std::ptrdiff_t(i) + 2, s.ranks.begin() + std::ptrdiff_t(n), s.ranks.begin() + std::ptrdiff_t(i) + 1);
    --n;
    if (i > 0) s.ranks[i - 1] = merges_.find(ids[i - 1], ids[i]).rank;
    if (i + 1 < n) s.ranks[i] = merges_.find(ids[i], ids[i + 1]).rank;
  }
  ids.resize(n);
}

/// The same with a heap of (rank, position) and a linked list: n log n. An entry is stale when its pair no longer has this rank.
void BpeModel::merge_many(std::vector<std::int32_t>& ids, Scratch& s) const {
  const auto n = std::int32_t(ids.size());
  s.next.resize(ids.size()), s.previous.resize(ids.size());
  s.heap.clear();
  const auto push = [&](std::int32_t i) {
    const std::int32_t j = s.next[std::size_t(i)];
    if (j >= n) return;
    const std::uint32_t rank = merges_.find(ids[std::size_t(i)], ids[std::size_t(j)]).rank;
    if (rank == MergeTable::none) return;
    s.heap.push_back(std::uint64_t(rank) << 32 | std::uint32_t(i));
    std::push_heap(s.heap.begin(), s.heap.end(), std::greater<>());
  };
  for (std::int32_t i = 0; i < n; ++i) s.next[std::size_t(i)] = i + 1, s.previous[std::size_t(i)] = i - 1;
  for (std::int32_t i = 0; i < n; ++i) push(i);
  while (!s.heap.empty()) {
    std::pop_heap(s.heap.begin(), s.heap.end(), std::greater<>());
    const auto i = std::int32_t(s.heap.back() & 0xFFFFFFFF);
    const auto rank = std::uint32_t(s.heap.back() >> 32);
    s.heap.pop_back();
    const std::int32_t j = s.next[std::size_t(i)];
    if (ids[std::size_t(i)] < 0 || j >= n) continue;
    const auto merge = merges_.find(ids[std::size_t(i)], ids[std::size_t(j)]);
    if (merge.rank != rank) continue;
    ids[std::size_t(i)] = merge.id, ids[std::size_t(j)] = -1;
    const std::int32_t after = s.next[std::size_t(i)] = s.next[std::size_t(j)];
    if (after < n) s.previous[std::size_t(after)] = i;
    push(i);
    if (const std::int32_t before = s.previous[std::size_t(i)]; before >= 0) push(before);
  }
  std::erase(ids, -1);
}

void BpeModel::encode(std::string_view part, std::vector<std::int32_t>& ids, Scratch& s) const {
  if (ignore_merges_) {
    const auto& all = byte_level_ ? parts_ : ids_;
    if (const auto at = all.find(std::string(part)); at != all.end()) {
      ids.push_back(at->second);
      return;
    }
  }
  constexpr std::size_t few = 64;
  s.ids.clear();
  begin(part, s.ids);
  s.ids.size() <= few ? merge_few(s.ids, s) : merge_many(s.ids, s);
  ids.insert(ids.end(), s.ids.begin(), s.ids.end());
}

}  // namespace octet::tokenizer
