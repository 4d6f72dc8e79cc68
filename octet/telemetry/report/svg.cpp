#include "octet/telemetry/report/svg.hpp"

#include <algorithm>
#include <cmath>

#include "octet/base/text.hpp"
#include "octet/telemetry/report/palette.hpp"

namespace octet::telemetry::report {
namespace {

/// Coordinates far outside the plot are clamped: renderers lose precision on huge ones.
void add_point(std::string& path, char command, const Point& p, double height) {
  path += command;
  path += coordinate(p.x * plot_units, 1);
  path += ' ';
  path += coordinate((1 - std::clamp(p.y, -2.0, 3.0)) * height, 1);
}

bool finite(const Point& p) { return std::isfinite(p.x) && std::isfinite(p.y); }

}  // namespace

Markup::Element open_chart(Markup& m, double height, const std::string& title, const std::string& description) {
  const std::string name = m.new_id(), about = m.new_id();
  Markup::Element svg = m.in("svg", {{"xmlns", "http://www.w3.org/2000/svg"},
                                     {"class", "frame"},
                                     {"width", "100%"},
                                     {"height", coordinate(height)},
                                     {"role", "img"},
                                     {"aria-labelledby", name + " " + about}});
  m.element("title", title, {{"id", name}});
  m.element("desc", description, {{"id", about}});
  return svg;
}

Markup::Element open_plot(Markup& m, double height) {
  return m.in("svg", {{"width", "100%"},
                      {"height", coordinate(height)},
                      {"viewBox", format("0 0 {} {}", plot_units, coordinate(height))},
                      {"preserveAspectRatio", "none"}});
}

std::string line_path(const Points& placed, double height) {
  std::string out;
  bool broken = true;
  for (const Point& p : placed) {
    if (finite(p)) add_point(out, broken ? 'M' : 'L', p, height);
    broken = !finite(p);
  }
  return out;
}

std::string band_path(const Points& low, const Points& high, double height) {
  std::string out;
  for (const Point& p : high)
    if (finite(p)) add_point(out, out.empty() ? 'M' : 'L', p, height);
  for (auto p = low.rbegin(); p != low.rend(); ++p)
    if (finite(*p) && !out.empty()) add_point(out, 'L', *p, height);
  return out.empty() ? out : out + "z";
}

void chart_text(Markup& m, double x, double y, const std::string& text, const std::string& classes, const std::string& align) {
  m.element("text", text, {{"x", percent(x)}, {"y", coordinate(y)}, {"class", classes}, {"text-anchor", align}});
}

void chart_mark(Markup& m, double x, double y, int style) {
  // A nested <svg> may have a position in percent, a <path> may not.
  const auto place = m.in("svg", {{"x", percent(x)}, {"y", coordinate(y)}, {"class", "mark"}});
  m.leaf("path", {{"class", series_class(style)}, {"d", mark_path(style)}});
}

}  // namespace octet::telemetry::report
