#pragma once

#include "octet/telemetry/report/markup.hpp"
#include "octet/telemetry/report/study.hpp"

namespace octet::telemetry::report {

/// The names of a table's columns.
void write_head(Markup&, const std::vector<std::string>& names);
/// A table of runs or arms: the name of each, and cells(group) below the other names; none for a group without a row.
void write_groups(Markup&, const Study&, const std::vector<std::string>& names,
                  const std::function<std::vector<std::string>(const Group&)>& cells);

}  // namespace octet::telemetry::report
