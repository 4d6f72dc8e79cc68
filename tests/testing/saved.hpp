#pragma once

#include "octet/ops/quantize/quantize.hpp"
#include "octet/ops/quantize/saved.hpp"
#include "tests/testing/sinks.hpp"

// Shared by the tests of ops that save their input as codes and read it from them.

namespace octet::testing {

/// Values that are saved as codes.
inline constexpr DType coded_dtypes[] = {DType::f32, DType::bf16};

/// x as codes, by quantize().
inline ops::Saved codes_of(Stream& s, const Tensor& x) {
  ops::Sink codes = ops::saved_sink(s, x, ops::saved_spec(), Lifetime::run);
  ops::quantize(s, x, codes);
  return {codes.codes.rows, x.dtype};
}

/// forward(s, x, y, codes) stores the same y with and without codes, and the codes and scales of quantize(), whether health is measured
/// or not.
template <class Forward>
void expect_saves_what_quantize_stores(Stream& s, const Tensor& x, Shape shape, const Forward& forward) {
  ops::Sink without = plain_sink(s, shape, x.dtype);
  forward(s, x, without, nullptr);
  const ops::Saved wanted = codes_of(s, x);
  for (const bool measured : {false, true}) {
    ops::QuantizeHealth health;
    ops::QuantizeSpec spec = ops::saved_spec();
    if (measured) spec.health = &health;
    ops::Sink with = plain_sink(s, shape, x.dtype), codes = ops::saved_sink(s, x, spec, Lifetime::run);
    forward(s, x, with, &codes);
    EXPECT_EQ(bytes(with.plain), bytes(without.plain));
    EXPECT_EQ(bytes(codes.codes.rows.codes), bytes(wanted.codes.codes)) << x.shape[0] << " x " << x.shape[1];
    const Tensor &found = codes.codes.rows.descales, &scales = wanted.codes.descales;
    for (std::int64_t r = 0; r < x.shape[0]; ++r)
      for (std::int64_t b = 0; b < ceil_div(x.shape[1], ops::saved_block); ++b)
        EXPECT_EQ(found.u8()[r * found.shape[1] + b], scales.u8()[r * scales.shape[1] + b]) << r << " " << b;
    EXPECT_EQ(health.values, measured ? x.count() : 0);
  }
}

/// The kernels of an activation function in one instruction set.
struct ActivationKernels {
  void (*forward)(const ops::Saved&, const ops::Sink&);
  void (*backward)(const Tensor&, const ops::Saved&, const ops::Sink&);
};

/// Inputs of activation functions that are saved as codes: rows of whole blocks, and rows and widths that fill no register.
inline const Shape coded_shapes[] = {{1, 32}, {3, 96}, {130, 288}, {5, 1024}};

/// Codes of x [rows, inputs * cols] give the same bits in y and dx as the decoded values.
inline void expect_codes_are_read_as_values(const ActivationKernels& f, Shape shape, int inputs, DType dtype) {
  Stream s(Device::cpu);
  const Tensor x = gaussian_tensor(s, {shape[0], inputs * shape[1]}, 1, dtype, 6), dy = gaussian_tensor(s, shape, 2, dtype);
  const ops::Saved codes = codes_of(s, x);
  const Tensor values = ops::values_of(s, codes);
  ops::Sink y[2] = {plain_sink(s, dy.shape, dtype), plain_sink(s, dy.shape, dtype)};
  ops::Sink dx[2] = {plain_sink(s, x.shape, dtype), plain_sink(s, x.shape, dtype)};
  f.forward(codes, y[0]), f.forward(values, y[1]);
  f.backward(dy, codes, dx[0]), f.backward(dy, values, dx[1]);
  EXPECT_EQ(bytes(y[0].plain), bytes(y[1].plain)) << shape[0] << " " << shape[1];
  EXPECT_EQ(bytes(dx[0].plain), bytes(dx[1].plain)) << shape[0] << " " << shape[1];
  EXPECT_NE(bytes(values), bytes(x)) << "codes have fewer digits";
}

/// Values from far apart, with zeros, infinities and NaN among them.
inline Tensor odd_tensor(Stream& s, Shape shape, DType dtype) {
  const Tensor x = gaussian_tensor(s, shape, 3, DType::f32, 2);
  for (std::int64_t i = 0; i < x.count(); ++i) {
    const int kind = int(i * 7919 % 211);
    if (kind < 20) x.f32()[i] *= std::ldexp(1.0f, kind * 4 - 40);
    if (kind == 21) x.f32()[i] = 0;
    if (kind == 22 && i % 5 == 0) x.f32()[i] = i % 2 ? __builtin_inff() : -__builtin_inff();
    if (kind == 23 && i % 5 == 1) x.f32()[i] = __builtin_nanf("");
  }
  ops::Sink sink = plain_sink(s, shape, dtype);
  ops::quantize(s, x, sink);
  return sink.plain;
}

}  // namespace octet::testing
