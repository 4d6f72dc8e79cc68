#pragma once

#include <cstdint>
#include <string_view>

namespace octet::health {

/// The rungs of the recovery ladder, in their order. docs/health.md describes each.
enum class Rung : std::uint8_t { skip, rate, layers, roll_back, stop, none };
inline constexpr int rungs = 5;
constexpr std::string_view name(Rung r) {
  constexpr std::string_view names[] = {"skip", "rate", "layers", "roll_back", "stop", "none"};
  return names[std::size_t(r)];
}

}  // namespace octet::health
