#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octet::watch {

/// The target of a request: its path and its parameters.
struct Target {
  std::string path{};
  std::map<std::string, std::string, std::less<>> query{};
};

/// Reads "/path?name=value&name=value". None unless path and names consist of letters, digits, '/', '.', '-' and '_', values also of ',',
/// and no name occurs twice: nothing is decoded, so no target has two spellings.
std::optional<Target> parse_target(std::string_view target);

/// The parameter as a whole number from `low` to `high`; `otherwise` where it is missing. Throws ConfigError.
std::int64_t number_of(const Target&, std::string_view name, std::int64_t otherwise, std::int64_t low, std::int64_t high);
/// "0,2,3" as different numbers below `count`, at most `most` of them. Throws ConfigError.
std::vector<std::size_t> numbers_of(const Target&, std::string_view name, std::size_t count, std::size_t most);

}  // namespace octet::watch
