#pragma once

#include <cstdint>
#include <string_view>

namespace octet::health {

/// The actions of the recovery ladder, in their order. docs/health.md describes each.
enum class RecoveryAction : std::uint8_t { skip, rate, layers, roll_back, stop, none };
inline constexpr int recovery_actions = 5;
constexpr std::string_view name(RecoveryAction r) {
  constexpr std::string_view names[] = {"skip", "rate", "layers", "roll_back", "stop", "none"};
  return names[std::size_t(r)];
}

}  // namespace octet::health
