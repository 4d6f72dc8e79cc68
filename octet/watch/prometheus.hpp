#pragma once

#include <string>

#include "octet/watch/runs.hpp"

namespace octet::watch {

/// The gauges of all runs in the text format of Prometheus, version 0.0.4. Every sample has the labels run, name and recipe.
std::string prometheus_text(Runs&);

}  // namespace octet::watch
