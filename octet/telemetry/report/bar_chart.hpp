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
/// The chart's <svg> alone, as wide as its surroundings, and its height.
void draw_plot(Markup&, const BarChart&);
double plot_height(const BarChart&);
/// The parts that have a length, each once, in their order.
std::vector<BarPart> legend_of(const BarChart&);

}  // namespace octet::telemetry::report
