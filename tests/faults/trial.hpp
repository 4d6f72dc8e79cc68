#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "octet/json/value.hpp"
#include "tests/faults/fault.hpp"

namespace octet::faults {

/// Whether alerts named the tensor where the fault is.
enum class Named : std::uint8_t {
  nothing,  // the fault has no tensor, or the recipe does not measure it
  wrong,
  right,
};

/// How a disturbed run ended.
struct Ending {
  bool ran = false;
  double loss = NAN;                   // held-out, at its end
  double gap = NAN;                    // of that loss to the undisturbed run's, as a fraction
  std::string state{};                 // of the run
  std::int64_t skipped = 0;            // steps
  std::vector<std::string> actions{};  // of recovery, in their order, without repetitions
};

/// One fault in one run.
struct Trial {
  std::string fault, recipe;
  std::int64_t seed = 0;
  std::string rule{};       // of the first alert; "" if there was none
  std::int64_t delay = -1;  // steps from the first disturbed one to it
  std::string tensor{};     // path of the first alert that has one
  Named named = Named::nothing;
  std::vector<std::string> rules{};             // of all alerts from then on, each once
  Damage damage{};                              // see Disturbance
  double recorded_before = NAN;                 // SQNR [dB] of the tensor in the record, before the fault
  double recorded = NAN, recorded_after = NAN;  // in its first step, and the lowest of the 10 steps after it
  Ending off, act;
};

/// Steps within which an alert counts as a detection, the first disturbed one being 0.
constexpr std::int64_t wanted_delay = 10;

/// Trials as two tables in Markdown with a row per fault and recipe: one of the alerts, one of SQNR and loss. With means
/// over seeds and intervals of 95%.
std::string tables(const std::vector<Trial>&);
/// The same for scripts: an object per trial.
json::Value to_json(const Trial&);
/// How many scored faults were detected in time, and how many of their tensors were named.
std::string summary(const std::vector<Trial>&);

}  // namespace octet::faults
