#include "octet/inspect/number.hpp"

#include <cmath>
#include <cstdint>
#include <optional>

#include "octet/base/aligned.hpp"
#include "octet/base/error.hpp"
#include "octet/base/text.hpp"
#include "octet/numerics/formats.hpp"

namespace octet::inspect {
namespace {

/// A format as its bits: a sign where it has one, the exponent, the mantissa.
struct Format {
  std::string name;
  bool sign;
  int exponent_bits, mantissa_bits;
  std::uint32_t (*encode)(float);
  float (*decode)(std::uint32_t);

  int size_bits() const { return exponent_bits + mantissa_bits; }
  std::uint32_t size_mask() const { return std::uint32_t((std::uint64_t(1) << size_bits()) - 1); }
  int digits() const { return (size_bits() + int(sign) + 3) / 4; }
};

template <class F>
Format eight_bits(const char* name) {
  return {name,
          true,
          7 - F::mantissa_bits,
          F::mantissa_bits,
          [](float x) { return std::uint32_t(encode<F>(x)); },
          [](std::uint32_t c) { return decode<F>(std::uint8_t(c)); }};
}

const std::vector<Format>& formats() {
  static const std::vector<Format> all = {
      {"fp32", true, 8, 23, [](float x) { return bits_of(x); }, [](std::uint32_t c) { return float_of(c); }},
      {"bf16", true, 8, 7, [](float x) { return std::uint32_t(to_bf16(x).bits); },
       [](std::uint32_t c) { return to_float(Bf16{std::uint16_t(c)}); }},
      {"fp16", true, 5, 10, [](float x) { return std::uint32_t(to_fp16(x).bits); },
       [](std::uint32_t c) { return to_float(Fp16{std::uint16_t(c)}); }},
      eight_bits<E5M2>("e5m2"),
      eight_bits<E4M3>("e4m3"),
      {"e8m0", false, 8, 0, [](float x) { return std::uint32_t(encode_e8m0(x)); },
       [](std::uint32_t c) { return decode_e8m0(std::uint8_t(c)); }},
  };
  return all;
}

/// The value next to that of `code`, upwards or downwards; none at the end and next to NaN.
std::optional<double> neighbour(const Format& f, std::uint32_t code, bool up) {
  if (std::isnan(f.decode(code))) return {};
  const std::uint32_t size = code & f.size_mask(), sign = code & ~f.size_mask();
  const bool outwards = up == (sign == 0);
  std::uint32_t next = 0;
  if (!outwards && size == 0) {
    if (!f.sign) return {};
    next = (sign ^ (f.size_mask() + 1)) | 1;
  } else {
    next = sign | (outwards ? size + 1 : size - 1);
  }
  if ((outwards && size == f.size_mask()) || std::isnan(f.decode(next))) return {};
  return double(f.decode(next));
}

std::string binary(std::uint32_t value, int digits) {
  std::string out;
  for (int i = digits; i-- > 0;) out += char('0' + (value >> i & 1));
  return out;
}

std::string hexadecimal(std::uint32_t value, int digits) {
  std::string out = "0x";
  for (int i = digits; i-- > 0;) out += "0123456789abcdef"[value >> 4 * i & 15];
  return out;
}

std::string neighbour_text(const Format& f, std::uint32_t code, bool up) {
  const auto x = neighbour(f, code, up);
  return x ? shortest(*x) : "-";
}

/// (value - x) / the distance of the format's values around x; beyond the largest one the last distance counts.
double error_in_units(const Format& f, std::uint32_t code, double x) {
  const double value = double(f.decode(code)), error = value - x;
  if (error == 0) return 0;
  auto other = neighbour(f, code, error < 0);
  if (!other || std::isinf(*other)) other = neighbour(f, code, error > 0);
  return other ? error / std::fabs(*other - value) : NAN;
}

/// The kind of value (normal, subnormal, ...) and how it was rounded.
std::string kind_text(const Format& f, std::uint32_t code, double x) {
  const double value = double(f.decode(code));
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return std::isinf(x) ? "infinity" : "infinity: beyond the range";
  if (!f.sign) return x == 0 ? "smallest: there is no zero" : value < x ? "largest: saturated" : value > x ? "rounded up" : "power of two";
  if (std::fabs(error_in_units(f, code, x)) > 0.5) return "largest: saturated";
  if (value == 0) return x == 0 ? "zero" : "zero: flushed";
  return (code & f.size_mask()) >> f.mantissa_bits == 0 ? "subnormal" : "normal";
}

std::vector<std::string> row_of(const Format& f, double x) {
  if (!f.sign && (x < 0 || std::signbit(x))) return {f.name, "none: there is no sign"};
  const std::uint32_t code = f.encode(float(x)), size = code & f.size_mask();
  const double value = double(f.decode(code)), error = value - x;
  const bool measured = std::isfinite(error);
  return {f.name,
          kind_text(f, code, x),
          f.sign ? binary(code >> f.size_bits(), 1) : "",
          binary(size >> f.mantissa_bits, f.exponent_bits),
          binary(size & ((1u << f.mantissa_bits) - 1), f.mantissa_bits),
          hexadecimal(code, f.digits()),
          shortest(value),
          neighbour_text(f, code, false),
          neighbour_text(f, code, true),
          measured ? format("{}", error) : "-",
          measured ? fixed(error_in_units(f, code, x), 3) : "-"};
}

}  // namespace

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const Format& f : formats()) names.push_back(f.name);
  return names;
}

std::string number_text(double x, const std::string& wanted) {
  TextTable table{{"format", "kind", "sign", "exponent", "mantissa", "code", "value", "below", "above", "error", "error [ulp]"}};
  for (const Format& f : formats())
    if (wanted.empty() || wanted == f.name) table.push_back(row_of(f, x));
  if (table.size() > 1) return aligned(table, 5);
  const std::string near = nearest_of(wanted, format_names());
  throw ConfigError(format("--format \"{}\": there are {}{}", printable(wanted), joined(format_names()),
                           near.empty() ? "" : "; did you mean " + near + "?"));
}

}  // namespace octet::inspect
