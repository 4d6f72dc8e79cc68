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

std::string shortest_abbreviated(std::string_view word, const std::vector<std::string>& keys) {
  std::string best;
  for (const auto& key : keys) {
    const auto name = last_name(key);
    const bool fits = abbreviates(word, name) || abbreviates(name, word);
    if (fits && (best.empty() || key.size() < best.size())) best = key;
  }
  return best;
}

std::string same_last_name(std::string_view word, const std::vector<std::string>& keys) {
  const auto at = std::find_if(keys.begin(), keys.end(), [&](const std::string& key) { return last_name(key) == word; });
  return at == keys.end() ? "" : *at;
}

std::string find(const Section& root, std::string_view key) {
  if (key.size() > 128) return "";  // no name is that long, and the distance is quadratic
  const auto parent = key.find('.') == std::string_view::npos ? std::string_view() : section_key(key);
  if (const Section* section = find_section(root, parent)) {
    const auto siblings = keys_of(*section);
    std::vector<std::string_view> names;
    for (const auto& sibling : siblings) names.push_back(last_name(sibling));
    if (const auto name = nearest_of(last_name(key), names); !name.empty()) return same_last_name(name, siblings);
    if (auto found = shortest_abbreviated(last_name(key), siblings); !found.empty()) return found;
  }
  std::vector<std::string> all;
  add_all_keys(root, all);
  // A prefix that all keys share makes none of them nearer.
  const std::size_t shared = root.key.empty() ? 0 : root.key.size() + 1;
  std::vector<std::string_view> within;
  for (const auto& known : all) within.push_back(std::string_view(known).substr(shared));
  if (const auto found = nearest_of(key.substr(std::min(shared, key.size())), within); !found.empty())
    return std::string(key.substr(0, shared)) + std::string(found);
  return same_last_name(last_name(key), all);
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

}  // namespace octet::config
