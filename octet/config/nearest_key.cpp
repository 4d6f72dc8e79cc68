#include "octet/config/nearest_key.hpp"

#include <algorithm>

#include "octet/base/text.hpp"

namespace octet::config {
namespace {

std::string_view last_name(std::string_view key) { return key.substr(key.rfind('.') + 1); }
std::string_view section_key(std::string_view key) { return key.substr(0, std::min(key.rfind('.'), key.size())); }

/// Whether `shorter` is `longer` with letters left out: "lr" and "learning_rate".
bool abbreviates(std::string_view shorter, std::string_view longer) {
  if (shorter.size() < 2 || shorter.size() >= longer.size() || shorter.front() != longer.front()) return false;
  std::size_t matched = 0;
  for (const char c : longer) {
    if (matched < shorter.size() && c == shorter[matched]) ++matched;
  }
  return matched == shorter.size();
}

void add_all_keys(const Section& section, std::vector<std::string>& out) {
  for (const auto& field : section.fields) out.push_back(field.key);
  for (const auto& inner : section.sections) out.push_back(inner.key), add_all_keys(inner, out);
}

std::vector<std::string> keys_of(const Section& section) {
  std::vector<std::string> out;
  for (const auto& field : section.fields) out.push_back(field.key);
  for (const auto& inner : section.sections) out.push_back(inner.key);
  return out;
}

/// The shortest of the keys whose last name `fits`.
template <class Fits>
std::string shortest_that(const std::vector<std::string>& keys, const Fits& fits) {
  std::string best;
  for (const auto& key : keys)
    if (fits(last_name(key)) && (best.empty() || key.size() < best.size())) best = key;
  return best;
}

std::string shortest_abbreviated(std::string_view word, const std::vector<std::string>& keys) {
  return shortest_that(keys, [&](std::string_view name) { return abbreviates(word, name) || abbreviates(name, word); });
}

/// Of the keys with this last name the one in the nearest section, else the first one.
std::string same_last_name(std::string_view key, const std::vector<std::string>& keys) {
  std::string best;
  std::ptrdiff_t most = -1;
  for (const auto& known : keys) {
    if (last_name(known) != last_name(key)) continue;
    const auto shared = std::mismatch(key.begin(), key.end(), known.begin(), known.end()).first - key.begin();
    if (shared > most) most = shared, best = known;
  }
  return best;
}

std::string initials(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i)
    if (i == 0 || name[i - 1] == '_') out += name[i];
  return out;
}

/// The key whose last name has these initials: "lr" and "learning_rate"; else one whose last name the word lengthens by whole words:
/// "batch_size" and "batch", or with `counts` "num_heads" and "heads".
std::string same_words(std::string_view word, const std::vector<std::string>& keys, bool counts) {
  constexpr std::size_t longest_count = 4;  // "num_", "max_"; a longer word in front has a meaning of its own
  if (word.size() < 2) return "";
  std::string initialled;  // of several the one with the longest name: long names are abbreviated
  for (const auto& key : keys)
    if (initials(last_name(key)) == word && last_name(key).size() > last_name(initialled).size()) initialled = key;
  if (!initialled.empty()) return initialled;
  if (auto found = shortest_that(keys, [&](std::string_view name) { return word.starts_with(std::string(name) + "_"); }); !found.empty())
    return found;
  return !counts ? "" : shortest_that(keys, [&](std::string_view name) {
    return word.ends_with("_" + std::string(name)) && word.size() - name.size() <= longest_count;
  });
}

/// How far a word may be from a name that it was meant to be: further where the first words agree ("eval_batches" and "eval_tokens").
std::size_t most_edits(std::string_view word, std::string_view name) {
  const auto first_word = [](std::string_view text) { return text.substr(0, text.find('_')); };
  return first_word(word) == first_word(name) ? (word.size() + 1) / 2 : (word.size() + 2) / 3;
}

std::string find(const Section& root, std::string_view key) {
  if (key.size() > 128) return "";  // no name is that long, and the distance is quadratic
  const auto parent = key.find('.') == std::string_view::npos ? std::string_view() : section_key(key);
  const auto word = last_name(key);
  std::vector<std::string> all;
  add_all_keys(root, all);
  if (auto found = same_last_name(key, all); !found.empty()) return found;
  const Section* section = find_section(root, parent);
  if (section) {
    const auto siblings = keys_of(*section);
    std::vector<std::string_view> names;
    for (const auto& sibling : siblings) names.push_back(last_name(sibling));
    if (auto found = same_words(word, siblings, true); !found.empty()) return found;
    if (const auto name = nearest_of(word, names); !name.empty()) return same_last_name(name, siblings);
  }
  if (auto found = same_words(word, all, parent.empty()); !found.empty()) return found;
  if (section)
    if (auto found = shortest_abbreviated(word, keys_of(*section)); !found.empty()) return found;
  // A prefix that all keys share makes none of them nearer, and neither does a section that exists.
  const std::size_t shared = root.key.empty() ? 0 : root.key.size() + 1;
  std::vector<std::string_view> within;
  for (const auto& known : all) within.push_back(std::string_view(known).substr(shared));
  const auto found = nearest_of(key.substr(std::min(shared, key.size())), within);
  const std::string near = found.empty() ? "" : std::string(key.substr(0, shared)) + found;
  return section && edit_distance(key, near) > most_edits(word, last_name(near)) ? "" : near;
}

}  // namespace

std::string suggestion(const Section& root, std::string_view key) {
  if (const auto found = find(root, key); !found.empty()) return "; did you mean `" + found + "`?";
  const Section* section = find_section(root, key.find('.') == std::string_view::npos ? std::string_view() : section_key(key));
  if (!section) section = &root;
  std::string keys;
  for (const auto& known : keys_of(*section)) keys += (keys.empty() ? "" : ", ") + std::string(last_name(known));
  return format("; {} has {}", section->key.empty() ? "the top level" : "`" + section->key + "`", keys);
}

std::string key_for_option(const Section& root, std::string_view option) {
  std::string word(option);
  std::ranges::replace(word, '-', '_');
  std::vector<std::string> all;
  add_all_keys(root, all);
  std::string found = same_last_name(word, all);
  if (found.empty()) found = same_words(word, all, true);
  const Section* section = found.empty() ? nullptr : find_section(root, found);
  return section ? keys_of(*section).front() : found;
}

}  // namespace octet::config
