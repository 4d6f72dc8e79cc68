#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "octet/telemetry/event.hpp"

namespace octet::telemetry {

/// One number of a run over its steps. TensorBoard, Prometheus, the report and the page of `octet watch` have its words and its value from
/// one table.
struct Metric {
  const char* name;     // of its curve in `octet watch`; "": it has none
  const char* title;    // of a plot
  const char* unit;     // of a plot's axis; "": none
  const char* meaning;  // one sentence
  const char* tag;      // on TensorBoard; "": not there
  const char* gauge;    // for Prometheus; "": not there
  /// None of an event without this number. NaN is a value that is not finite.
  std::optional<double> (*of)(const Event&);
};

std::span<const Metric> metrics();
/// Throws ContractError for a name that none has.
const Metric& metric(std::string_view name);

}  // namespace octet::telemetry
