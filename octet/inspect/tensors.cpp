#include "octet/inspect/tensors.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "octet/base/aligned.hpp"
#include "octet/numerics/formats.hpp"
#include "octet/train/checkpoint/stored_variable.hpp"

namespace octet::inspect {
namespace {

struct Statistics {
  double smallest = std::numeric_limits<double>::infinity(), largest = -std::numeric_limits<double>::infinity(), squares = 0;
  std::int64_t values = 0, zeros = 0, nonfinite = 0, at_most = 0;
  int codes = 0;  // of an 8-bit type: how many occur

  void add(double x, std::int64_t times = 1) {
    values += times;
    if (!std::isfinite(x)) {
      nonfinite += times;
      return;
    }
    smallest = std::min(smallest, x), largest = std::max(largest, x), squares += double(times) * x * x;
    if (x == 0) zeros += times;
  }
};

template <class T, class Value>
Statistics of_values(std::span<const std::byte> bytes, Value value) {
  Statistics s;
  for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T x;
    std::memcpy(&x, bytes.data() + at, sizeof x);
    s.add(double(value(x)));
  }
  return s;
}

/// `most`: the format's largest finite value.
template <class Value>
Statistics of_codes(std::span<const std::byte> bytes, double most, Value value) {
  std::array<std::int64_t, 256> count{};
  for (const std::byte b : bytes) ++count[std::size_t(b)];
  Statistics s;
  for (std::size_t code = 0; code < count.size(); ++code) {
    if (count[code] == 0) continue;
    const double x = double(value(std::uint8_t(code)));
    s.add(x, count[code]);
    ++s.codes;
    if (std::fabs(x) == most) s.at_most += count[code];
  }
  return s;
}

std::optional<Statistics> statistics(const io::TensorView& t) {
  const auto plain = [](auto x) { return x; };
  switch (t.dtype) {
    case io::StoredDType::f32: return of_values<float>(t.bytes, plain);
    case io::StoredDType::f64: return of_values<double>(t.bytes, plain);
    case io::StoredDType::bf16: return of_values<Bf16>(t.bytes, [](Bf16 x) { return to_float(x); });
    case io::StoredDType::f16: return of_values<Fp16>(t.bytes, [](Fp16 x) { return to_float(x); });
    case io::StoredDType::i16: return of_values<std::int16_t>(t.bytes, plain);
    case io::StoredDType::i32: return of_values<std::int32_t>(t.bytes, plain);
    case io::StoredDType::i64: return of_values<std::int64_t>(t.bytes, plain);
    case io::StoredDType::u8: return of_codes(t.bytes, 255, plain);
    case io::StoredDType::e4m3: return of_codes(t.bytes, double(E4M3::max), [](std::uint8_t c) { return decode<E4M3>(c); });
    case io::StoredDType::e5m2: return of_codes(t.bytes, double(E5M2::max), [](std::uint8_t c) { return decode<E5M2>(c); });
    case io::StoredDType::e8m0:
      return of_codes(t.bytes, double(decode_e8m0(E8M0::max_code)), [](std::uint8_t c) { return decode_e8m0(c); });
    default: return {};
  }
}

/// Of the values that codes and scales decode to; codes as of_codes counts them.
Statistics of_variable(const train::StoredVariable& v) {
  Statistics s = statistics(v.codes).value();
  const Statistics codes = s;
  s = {.codes = codes.codes};
  for (const float x : train::values_of(v)) s.add(double(x));
  s.at_most = codes.at_most;
  return s;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string out;
  for (const std::int64_t d : shape) out += (out.empty() ? "" : " x ") + to_text(d);
  return out.empty() ? "one value" : out;
}

std::string share_text(std::int64_t part, std::int64_t whole) {
  return part == 0 ? "0" : fixed(100.0 * double(part) / double(whole), 3) + "%";
}

std::vector<std::string> row_of(const io::TensorView& t, const std::string& type, const std::optional<Statistics>& s) {
  std::vector<std::string> row{printable(t.name), type, shape_text(t.shape), bytes_text(double(t.bytes.size()))};
  if (!s || s->values == 0) return row;
  const std::int64_t finite = s->values - s->nonfinite;
  const auto number = [&](double x) { return finite == 0 ? std::string("-") : to_text(x); };
  row.insert(row.end(), {number(s->smallest), number(s->largest), number(std::sqrt(s->squares / double(finite))),
                         share_text(s->zeros, s->values), grouped(s->nonfinite)});
  if (s->codes > 0) row.insert(row.end(), {format("{}", s->codes), share_text(s->at_most, s->values)});
  return row;
}

}  // namespace

std::string tensors_text(const std::vector<const io::SafetensorsFile*>& files) {
  TextTable table{{"tensor", "type", "shape", "bytes", "smallest", "largest", "rms", "zeros", "not finite", "codes", "at the largest"}};
  std::int64_t elements = 0, nonfinite = 0;
  double bytes = 0;
  std::string first;
  for (const io::SafetensorsFile* file : files)
    for (const io::TensorView& t : file->tensors()) {
      const auto variable = train::find_scaled_variable(*file, t);
      const auto s = variable ? of_variable(*variable) : statistics(t);
      table.push_back(row_of(t, variable ? to_text(variable->storage) : to_text(t.dtype), s));
      elements += t.count(), bytes += double(t.bytes.size());
      if (s && s->nonfinite > 0 && first.empty()) first = format(", the first in {}", printable(t.name));
      nonfinite += s ? s->nonfinite : 0;
    }
  bool eight_bits = false;
  for (const auto& row : table) eight_bits = eight_bits || (&row != &table[0] && row.size() > 9);
  if (!eight_bits) table[0].resize(9);
  return aligned(table, 3) + format("{} tensors, {} values, {}; {} values are not finite{}\n", table.size() - 1, grouped(elements),
                                    bytes_text(bytes), grouped(nonfinite), first);
}

}  // namespace octet::inspect
