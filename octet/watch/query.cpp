#include "octet/watch/query.hpp"

#include <algorithm>
#include <charconv>

#include "octet/base/error.hpp"
#include "octet/base/text.hpp"

namespace octet::watch {
namespace {

constexpr std::size_t longest_target = 1024;

bool consists_of(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || others.find(c) != others.npos;
  });
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<Target> parse_target(std::string_view target) {
  const std::size_t mark = target.find('?');
  Target out{.path = std::string(target.substr(0, mark))};
  if (target.size() > longest_target || !target.starts_with('/') || !consists_of(out.path, "/.-_")) return std::nullopt;
  if (mark == target.npos) return out;
  for (std::size_t at = mark + 1, end = at; end != target.npos; at = end + 1) {
    end = target.find('&', at);
    const std::string_view word = target.substr(at, end == target.npos ? end : end - at);
    const std::size_t equal = word.find('=');
    if (equal == word.npos || !consists_of(word.substr(0, equal), "-_") || !consists_of(word.substr(equal + 1), ",.-_"))
      return std::nullopt;
    if (!out.query.emplace(word.substr(0, equal), word.substr(equal + 1)).second) return std::nullopt;
  }
  return out;
}

std::int64_t number_of(const Target& target, std::string_view name, std::int64_t otherwise, std::int64_t low, std::int64_t high) {
  const auto at = target.query.find(name);
  if (at == target.query.end()) return otherwise;
  const auto value = whole_number(at->second);
  if (!value || *value < low || *value > high) throw ConfigError(format("{} must be a whole number from {} to {}", name, low, high));
  return *value;
}

std::vector<std::size_t> numbers_of(const Target& target, std::string_view name, std::size_t count, std::size_t most) {
  std::vector<std::size_t> out;
  const auto at = target.query.find(name);
  const std::string_view text = at == target.query.end() ? std::string_view() : at->second;
  for (std::size_t begin = 0, end = 0; end != text.npos && !text.empty(); begin = end + 1) {
    end = text.find(',', begin);
    const auto value = whole_number(text.substr(begin, end == text.npos ? end : end - begin));
    if (!value || *value < 0 || std::size_t(*value) >= count)
      throw ConfigError(format("{} must be numbers of runs, below {}", name, count));
    if (std::find(out.begin(), out.end(), std::size_t(*value)) == out.end()) out.push_back(std::size_t(*value));
  }
  if (out.empty() || out.size() > most) throw ConfigError(format("{} must be from 1 to {} numbers of runs: {}=0,1", name, most, name));
  return out;
}

}  // namespace octet::watch
