#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

// The 8-bit formats once more, from the text of OCP FP8 1.0 alone and in double: the values of all codes are listed and an encoder looks
// for the nearest. Slow, and shares nothing with octet/numerics/formats.hpp.

namespace octet::testing {

class CodeTable {
 public:
  /// Sign, exponent, mantissa. `ieee`: the largest exponent means infinity and NaN; otherwise only its last code is NaN.
  CodeTable(int exponent_bits, int mantissa_bits, int bias, bool ieee) {
    const int mantissas = 1 << mantissa_bits, exponents = 1 << exponent_bits;
    for (int exponent = 0; exponent < exponents; ++exponent)
      for (int mantissa = 0; mantissa < mantissas; ++mantissa) {
        const double fraction = double(mantissa) / mantissas;
        double value = exponent == 0 ? fraction * std::pow(2.0, 1 - bias) : (1 + fraction) * std::pow(2.0, exponent - bias);
        const bool last = exponent == exponents - 1;
        if (ieee && last) value = mantissa == 0 ? HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
        if (!ieee && last && mantissa == mantissas - 1) value = std::numeric_limits<double>::quiet_NaN();
        values_.push_back(value);
        if (std::isfinite(value)) finite_.push_back(value);
      }
  }
  static const CodeTable& e4m3() {
    static const CodeTable table(4, 3, 7, false);
    return table;
  }
  static const CodeTable& e5m2() {
    static const CodeTable table(5, 2, 15, true);
    return table;
  }
  /// The table of one of Octet's formats, which its largest value tells.
  template <class Format>
  static const CodeTable& of() {
    static_assert(Format::max == 448.0f || Format::max == 57344.0f);
    return Format::max == 448.0f ? e4m3() : e5m2();
  }

  double decode(std::uint8_t code) const { return (code & 0x80) != 0 ? -values_[code & 0x7F] : values_[code & 0x7F]; }

  /// The nearest finite code, of two equally near ones the even; NaN gives 0x7F.
  std::uint8_t encode(double x) const {
    if (std::isnan(x)) return 0x7F;
    const double size = std::fabs(x);
    std::size_t code = below(size);
    if (code + 1 < finite_.size()) {
      const double down = size - finite_[code], up = finite_[code + 1] - size;
      if (up < down || (up == down && code % 2 == 1)) ++code;
    }
    return std::uint8_t(code | (std::signbit(x) ? 0x80u : 0u));
  }

  /// The code of the largest finite value not above size >= 0.
  std::size_t below(double size) const { return std::size_t(std::upper_bound(finite_.begin(), finite_.end(), size) - finite_.begin()) - 1; }

  /// The finite values >= 0, ascending: entry i is code i.
  const std::vector<double>& finite() const { return finite_; }

  /// Where the result of encoding changes: every value and every midpoint of two.
  std::vector<float> marks() const {
    std::vector<float> out = {std::numeric_limits<float>::infinity()};
    for (std::size_t i = 0; i < finite_.size(); ++i) {
      out.push_back(float(finite_[i]));
      if (i > 0) out.push_back(float(0.5 * (finite_[i - 1] + finite_[i])));
    }
    out.push_back(float(finite_.back() + 0.5 * (finite_.back() - finite_[finite_.size() - 2])));
    return out;
  }

 private:
  std::vector<double> values_, finite_;
};

}  // namespace octet::testing
