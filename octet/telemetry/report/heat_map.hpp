#pragma once

#include <span>
#include <string>
#include <vector>

#include "octet/telemetry/report/markup.hpp"

namespace octet::telemetry::report {

/// One class of cells: values below `below` that no earlier class took.
struct HeatBin {
  double below;
  std::string classes;  // of its colour: "h0" .. "h6", "hot"
  std::string label;    // of the legend
};

/// Names of a row: rows of one group are adjacent, with a line between groups.
struct HeatRow {
  std::string name;   // "layers.3.mlp.up.dy"
  std::string site;   // "layers.3.mlp.up"
  std::string group;  // "layers.3"
};

/// Values by row and column. A cell that is NaN stays empty; one in `alarms` is drawn as non-finite.
struct HeatMap {
  std::string title, note;
  std::string nothing{};
  std::string x_label;
  double first = 0, last = 0;  // x of the first and the last column
  std::vector<HeatRow> rows;
  std::size_t columns = 0;
  std::vector<float> values;          // [rows, columns]
  std::vector<unsigned char> alarms;  // [rows, columns], or empty
  std::vector<HeatBin> bins;          // by rising `below`, the last infinity
};

/// Pixels for the longest row label at the scale that `rows` are drawn in.
double label_width(std::span<const HeatRow> rows);

/// A <figure>: title, note, legend, cells; the text `nothing` instead of the cells if every cell is 0 or empty. Neighbouring cells of one
/// class in a row are one stroke, so that a uniform map is small.
void draw(Markup&, const HeatMap&);
/// The map's <svg> alone, as wide as its surroundings, and its height in pixels.
void draw_plot(Markup&, const HeatMap&);
double plot_height(const HeatMap&);

}  // namespace octet::telemetry::report
