#pragma once

#include <cstddef>
#include <string>

namespace octet::telemetry::report {

/// The style of run i in every chart: class "s<i>" (colour in the style sheet, on paper also a dash pattern) and a marker shape.
/// Entry 0 is the ink of the text and belongs to the baseline; the rest are after Okabe and Ito, distinguishable with any colour vision.
inline constexpr int styles = 8;
inline std::string series_class(int i) { return {'s', char('0' + i % styles)}; }

/// The colour of category i of memory.
inline std::string category_class(std::size_t i) { return {'m', char('0' + i % 8)}; }

/// A shape within [-4, 4] x [-4, 4] around its point, as SVG path data.
inline const char* mark_path(int i) {
  static constexpr const char* shapes[styles] = {"M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",
                                                 "M-3-3h6v6h-6z",
                                                 "M0-4L3.6 2.6H-3.6z",
                                                 "M0-4L3.6 0L0 4L-3.6 0z",
                                                 "M0 4L3.6-2.6H-3.6z",
                                                 "M-1.2-4h2.4v2.8h2.8v2.4h-2.8v2.8h-2.4v-2.8h-2.8v-2.4h2.8z",
                                                 "M0-4L3.8-1.2L2.4 3.3H-2.4L-3.8-1.2z",
                                                 "M-3.4-1.7L0-4L3.4-1.7V1.7L0 4L-3.4 1.7z"};
  return shapes[i % styles];
}

}  // namespace octet::telemetry::report
