#pragma once

#include "octet/ops/quantize/sink.hpp"
#include "tests/cuda/parity.hpp"

// Shared by the cases of ops that fill a sink: every way to quantize, and all contents of a sink as results.

namespace octet::parity {

/// Shapes of a norm's input: empty, tiny, of one token, not whole packs, and of every way to keep a row.
inline const Shape norm_shapes[] = {{0, 16}, {1, 1}, {1, 4096}, {5, 7}, {130, 264}, {300, 896}, {64, 1536}, {33, 3584}, {7, 4608}};

/// Of few rows: of one to eight, of one and several packs per thread, with parts of blocks at their ends, and too long or not aligned.
inline const Shape few_row_shapes[] = {{0, 16}, {1, 4096}, {1, 1000}, {2, 2048}, {3, 328},
                                       {5, 7},  {7, 4608}, {8, 8192}, {2, 9000}, {9, 512}};

struct Kind {
  std::string name;
  ops::QuantizeSpec spec;
  bool known = false;  // the scale is, as a delayed one
};

/// Not quantized; then, unless values are f16, each block, rule and format, alike and mixed.
inline std::vector<Kind> kinds(DType plain) {
  if (plain == DType::f16) return {{"plain", {.format = plain}}};
  const ScaleBlock tensor{0, 0}, row{1, 0}, v32{1, 32}, v64{1, 64}, v128{1, 128}, square{128, 128};
  using enum ScaleRule;
  constexpr DType e4m3 = DType::e4m3, e5m2 = DType::e5m2;
  return {{"plain", {.format = plain}},
          {"known", {.format = e4m3}, true},
          {"known e5m2", {.format = e5m2}, true},
          {"tensor", {.format = e4m3}},
          {"tensor e5m2 power of two", {.format = e5m2, .rule = power_of_two}},
          {"row", {.format = e4m3, .rule = power_of_two, .rows = row, .cols = row}},
          {"row e5m2 quotient", {.format = e5m2, .rows = row, .cols = row}},
          {"1x128", {.format = e4m3, .rule = power_of_two, .rows = v128, .cols = v128}},
          {"1x128 e5m2 quotient", {.format = e5m2, .rows = v128, .cols = v128}},
          {"1x64 quotient", {.format = e4m3, .rows = v64, .cols = v64}},
          {"128x128", {.format = e4m3, .rule = power_of_two, .rows = square, .cols = square}},
          {"128x128 quotient", {.format = e4m3, .rows = square, .cols = square}},
          {"1x32 e8m0", {.format = e4m3, .rule = e8m0, .rows = v32, .cols = v32}},
          {"1x32 e8m0 e5m2", {.format = e5m2, .rule = e8m0, .rows = v32, .cols = v32}},
          {"1x32 f32", {.format = e4m3, .rule = power_of_two, .rows = v32, .cols = v32}},
          {"128x128 e8m0", {.format = e4m3, .rule = e8m0, .rows = square, .cols = square}},
          {"row and tensor", {.format = e4m3, .rule = power_of_two, .rows = row, .cols = tensor}},
          {"tensor and 1x128", {.format = e4m3, .rule = power_of_two, .rows = tensor, .cols = v128}},
          {"128x128 and 1x128", {.format = e4m3, .rule = power_of_two, .rows = square, .cols = v128}},
          {"1x128 and row", {.format = e4m3, .rows = v128, .cols = row}}};
}

/// Values that are difficult for a rule or an encoder, scattered among ordinary values: far from each other, so that some blocks stay
/// clean.
inline std::vector<float> odd_values(std::int64_t n) {
  const float odd[] = {NAN,         INFINITY, -INFINITY, 0.0f,     -0.0f,      448.0f / 24, 449.0f / 24, 464.0f / 24,
                       465.0f / 24, 1e30f,    -3e38f,    1e-40f,   0x1p-149f,  0x1p-126f,   1e-38f,      57344.0f,
                       61440.0f,    61441.0f, -NAN,      0x1p-10f, 0x1.8p-10f, 0x1p-16f,    0x1p-17f};
  std::vector<float> values = testing::gaussian(std::size_t(n), 3, 0.01);
  for (std::size_t i = 0, k = 0; i < values.size(); i += 97 + 61 * (k % 7), ++k) values[i] = odd[k % std::size(odd)];
  return values;
}

/// The request for a sink.
struct Wanted {
  bool rows = true, cols = true, keep_plain = false, noise = false, count = true;
  bool measured = true;  // by a maximum and health
};
inline std::vector<Wanted> every_orientation() {
  return {{true, false},
          {true, true},
          {false, true},
          {true, true, true, true},
          {true, false, false, true},
          {.cols = false, .measured = false},
          {.cols = false, .count = false},
          {.count = false},
          {.rows = false, .count = false},
          {.keep_plain = true, .count = false}};
}

/// A sink on one side with a maximum and health of its own.
struct SinkOnSide {
  ops::Sink sink;
  Tensor amax, health;

  SinkOnSide(Side& side, const Kind& kind, Shape shape, DType dtype, const Wanted& want) {
    ops::QuantizeSpec spec = kind.spec;
    amax = side.from({0.25f}, {1}),
    health = side.raw(std::vector<std::uint8_t>(sizeof(ops::QuantizeHealth)), {sizeof(ops::QuantizeHealth)});
    spec.count = want.count, spec.measure_noise = want.noise;
    if (want.measured) spec.amax = amax, spec.health = health.as<ops::QuantizeHealth>();
    if (kind.known) spec.scale = side.from({24.0f}, {1}), spec.descale = side.from({1 / 24.0f}, {1});
    sink = ops::make_sink(side.stream(), spec,
                          {.shape = shape,
                           .dtype = dtype,
                           .rows = want.rows,
                           .cols = want.cols,
                           .rows_region = Lifetime::run,
                           .cols_region = Lifetime::run,
                           .keep_plain = want.keep_plain});
  }

  /// Values and codes bit by bit.
  void declare(Side& side, const std::string& name, bool has_plain) const {
    if (!sink.spec.quantizes()) return side.result(name + " plain", sink.plain, same_bits());
    if (has_plain) side.result(name + " plain", sink.plain, same_bits());
    for (const bool rows : {true, false}) {
      const Quantized& q = rows ? sink.codes.rows : sink.codes.cols;
      if (!q) continue;
      side.result(name + (rows ? " row codes" : " column codes"), q.codes, same_bits());
      side.result(name + (rows ? " row descales" : " column descales"), q.descales, same_bits());
    }
    side.result(name + " amax", amax, same_bits());
    std::byte* const at = health.as<std::byte>();
    side.result(name + " range of scales", {at + offsetof(ops::QuantizeHealth, scale_min), {2}, DType::f32}, same_bits());
    side.result(name + " values, saturated, flushed, nonfinite", {at + offsetof(ops::QuantizeHealth, values), {4}, DType::i64},
                same_bits());
    side.result(name + " blocks", {at + offsetof(ops::QuantizeHealth, blocks), {5}, DType::i64}, same_bits());
    // A thread adds up to 128 squares in f32; x * scale and the distance to its code are rounded by 2^-24 of x * scale.
    side.result(name + " signal and noise", {at + offsetof(ops::QuantizeHealth, signal), {2}, DType::f64},
                within_share_of_largest(0x1p-17));
  }
};

/// Runs fill(stream, sink) for every kind, for rows alone, for both orientations with the plain values, and for columns alone; and for the
/// same as in a step that is not measured.
template <class Fill>
void each_sink(Side& side, Shape shape, DType dtype, const Fill& fill,
               const std::vector<Wanted>& wants = {{true, false},
                                                   {true, true, true, true},
                                                   {false, true},
                                                   {.cols = false, .count = false},
                                                   {.keep_plain = true, .count = false},
                                                   {.count = false},
                                                   {.rows = false, .count = false},
                                                   {.rows = false, .keep_plain = true},
                                                   {.rows = false, .keep_plain = true, .count = false},
                                                   {.cols = false, .measured = false},
                                                   {.cols = false, .keep_plain = true, .measured = false}}) {
  for (const Kind& kind : kinds(dtype))
    for (const Wanted& want : wants) {
      SinkOnSide s(side, kind, shape, dtype, want);
      fill(side.stream(), s.sink);
      s.declare(side,
                kind.name + (want.rows ? want.cols ? " both" : " rows" : " columns") + (want.count ? "" : " uncounted") +
                    (want.measured ? "" : " unmeasured") + (want.keep_plain ? " and plain" : ""),
                want.keep_plain);
    }
}

}  // namespace octet::parity
