#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "octet/tensor/cpu/isa.hpp"
#include "octet/tensor/cpu/threads.hpp"
#include "octet/tensor/stream.hpp"
#include "tests/testing/bounded.hpp"
#include "tests/testing/rounded.hpp"
#include "tests/testing/testing.hpp"

// Shared by tests of ops: tensors from numbers and back, kernels of every instruction set, and the dry run beside the real one.

namespace octet::testing {

/// A tensor that lives as long as the stream and holds `values`, rounded to its dtype (f32, bf16 or f16); on the null device, no values.
inline Tensor tensor_of(Stream& stream, const std::vector<float>& values, Shape shape, DType dtype = DType::f32) {
  const Tensor t = stream.empty(shape, dtype, Lifetime::run);
  if (stream.device() == Device::null) return t;
  for (std::int64_t i = 0; i < t.count(); ++i) put(t, i, values[std::size_t(i)]);
  return t;
}
inline Tensor gaussian_tensor(Stream& stream, Shape shape, std::uint64_t seed, DType dtype = DType::f32, double scale = 1) {
  return tensor_of(stream, gaussian(std::size_t(shape.count()), seed, scale), shape, dtype);
}

/// Values of a tensor, or of some of its elements.
inline std::vector<double> values(const Tensor& t, std::int64_t begin, std::int64_t n) {
  std::vector<double> out(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) out[std::size_t(i)] = value_at(t, begin + i);
  return out;
}
inline std::vector<double> values(const Tensor& t) { return values(t, 0, t.count()); }

/// The bytes of a tensor, for comparisons bit by bit.
inline std::vector<std::uint8_t> bytes(const Tensor& t) { return {t.u8(), t.u8() + t.bytes()}; }

/// Every element within its bound, plus the rounding to the tensor's dtype.
inline void expect_within(const Tensor& got, std::int64_t begin, const std::vector<Bounded>& wanted, const char* what) {
  const auto [unit, smallest] = rounding_to(got.dtype);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Bounded& w = wanted[i];
    const double g = value_at(got, begin + std::int64_t(i)), bound = w.error + unit * (std::fabs(w.value) + w.error) + smallest;
    ASSERT_LE(std::fabs(g - w.value), bound) << what << " of " << to_text(got.shape) << " " << name(got.dtype) << " at "
                                             << begin + std::int64_t(i);
  }
}

/// The kernel, or several that belong together, of every instruction set that this machine has: kernels(cpu::v3::f, cpu::v4::f).
template <class Kernel>
std::vector<Kernel> kernels(Kernel v3, Kernel v4) {
  std::vector<Kernel> out{v3};
  if (cpu::detected_isa() == cpu::Isa::v4) out.push_back(v4);
  return out;
}

/// Computes with n threads until it goes.
class WithThreads {
 public:
  explicit WithThreads(int n) : before_(cpu::threads()) { cpu::set_threads(n); }
  ~WithThreads() { cpu::set_threads(before_); }
  WithThreads(const WithThreads&) = delete;

 private:
  int before_;
};

/// Runs op(stream) on the CPU and on the null device: both need the same memory and announce the same work.
template <class Op>
void expect_dry_run_agrees(const Op& op) {
  Stream real(Device::cpu), dry(Device::null);
  op(real);
  op(dry);
  EXPECT_EQ(real.arena().peak().by_category, dry.arena().peak().by_category);
  EXPECT_EQ(real.arena().peak().total, dry.arena().peak().total);
  EXPECT_EQ(real.work().ops, dry.work().ops);
  EXPECT_EQ(real.work().flops, dry.work().flops);
  EXPECT_EQ(real.work().bytes, dry.work().bytes);
}

}  // namespace octet::testing
