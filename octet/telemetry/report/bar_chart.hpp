#pragma once

#include <string>
#include <vector>

#include "octet/telemetry/report/markup.hpp"

namespace octet::telemetry::report {

struct BarPart {
  std::string name;
  std::string classes;  // of its colour
  double value = 0;
};

/// One bar of one or more parts.
struct Bar {
  std::string name, value_text;
  std::vector<BarPart> parts;
};

struct BarChart {
  std::string title, note;
  std::string unit;  // the unit of lengths
  std::vector<Bar> bars;
  bool legend = false;  // of the parts, by name
};

/// A <figure> of horizontal bars that begin at 0, each under its name and value.
void draw(Markup&, const BarChart&);

}  // namespace octet::telemetry::report
