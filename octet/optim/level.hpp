#pragma once

#include <optional>
#include <string>
#include <vector>

#include "octet/ops/adamw/adamw.hpp"

namespace octet::optim {

/// How the variables of training are stored: weight matrices, their gradients, and AdamW's moments of all parameters.
struct StateStorage {
  Storage master = Storage::f32, gradients = Storage::f32, m = Storage::f32, v = Storage::f32;
  friend bool operator==(const StateStorage&, const StateStorage&) = default;
};

/// Names of combinations, in bytes per parameter of a matrix:
///   O0  16   all f32
///   O1  13   gradients e4m3
///   O2   8   O1 with the first moment in e4m3 and the second in f16
///   O3   6   O2 with masters in f16
/// Source: Peng et al. 2023, "FP8-LM", section 2. O1 and O2 have f32 masters; in MS-AMP they have FP16 ones.
enum class Level : std::uint8_t { O0, O1, O2, O3 };
inline constexpr int levels = 4;
std::string to_text(Level);
StateStorage storage_of(Level);

/// One variable of StateStorage, and its key.
struct StateKey {
  const char *name, *key;  // "master weights", "optim.master"
  Storage StateStorage::*storage;
  std::optional<ops::AdamWVariable> variable;  // none: the update does not store it
};
const std::vector<StateKey>& state_keys();

/// Bytes of a parameter of a matrix, without scales.
std::int64_t bytes_per_parameter(const StateStorage&);

/// "1 byte per value, a scale per 128 values".
std::string description(Storage);

/// Why a combination is known to fail, and what to set instead; "" where it is not.
std::string unsafe_reason(const StateStorage&);

}  // namespace octet::optim
