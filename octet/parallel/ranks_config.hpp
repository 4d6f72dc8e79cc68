#pragma once

#include "octet/config/fields.hpp"
#include "octet/tensor/storage.hpp"

namespace octet::parallel {

/// The ranks of a run, as [ranks] in TOML.
struct RanksConfig {
  std::int64_t data = 0;      // ranks that each train on their own sequences; 0: all that were started
  std::int64_t zero = 0;      // stage of ZeRO
  double limit_seconds = 60;  // how long a rank waits for another

  void fields(config::FieldVisitor&);
};

/// How gradients travel.
enum class Wire : std::uint8_t {
  stored,  // as they are stored; e4m3_tensor as e4m3_shared
  f32,
  bf16,
  e4m3,         // see eight_bit_sum.hpp
  e4m3_shared,  // see shared_scale_sum.hpp
  e4m3_prescaled,
  e4m3_postscaled,
};
std::string_view name(Wire);
inline std::string to_text(Wire w) { return std::string(name(w)); }

/// When the factor mu of e4m3_shared grows.
enum class MuGrowthRule : std::uint8_t { at_zero, below_threshold };

/// The data that ranks exchange and its format, as [comm] in TOML.
struct CommConfig {
  Wire gradients = Wire::stored;
  MuGrowthRule mu_growth = MuGrowthRule::at_zero;

  void fields(config::FieldVisitor&);
  /// Whether a factor mu is in use.
  bool has_mu(Storage gradients) const;
};

/// The wire format of gradients in this storage.
Wire wire_of(Wire wanted, Storage gradients);

}  // namespace octet::parallel
