#pragma once

#include <string>

#include "octet/bench/timing.hpp"

namespace octet::bench {

/// The unit of a row's rate.
enum class Unit : std::uint8_t { bytes, flops, tokens };
std::string_view name(Unit);  // "B/s", "FLOP/s", "tokens/s"

/// One measurement.
struct Row {
  std::string group, name, shape, precision;
  Unit unit = Unit::bytes;
  Timing seconds;     // of one launch
  double amount = 0;  // bytes read and written, operations (2 per multiply-add), or tokens of one launch
  double limit = 0;   // the machine's limit, measured in the same run

  double rate() const { return amount / seconds.median; }
  double share() const { return rate() / limit; }
};

}  // namespace octet::bench
