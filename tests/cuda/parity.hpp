#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "octet/tensor/stream.hpp"
#include "tests/testing/testing.hpp"

// Holds an op on the GPU against the same op on the CPU, on the same inputs. A case is written once: it makes tensors from named
// numbers, calls the op, and says which tensors are results and how near they must be.

namespace octet::parity {

/// How near a result must be: bit by bit, all elements or all but a share of them, or |gpu - cpu| <= bound(i) + rounding of both to the
/// tensor's dtype.
struct Nearness {
  bool exact = false;
  double share = 0;                           // where not 0: elements that may differ, of all
  std::function<double(std::int64_t)> bound;  // of element i, in absolute terms; without rounding
  double of_largest = 0;                      // added to it: this share of the result's largest magnitude on the CPU
};
inline Nearness same_bits() { return {.exact = true}; }
inline Nearness same_bits_but(double share) { return {.share = share}; }
/// The same for every element.
inline Nearness within(double bound) {
  return {.bound = [bound](std::int64_t) { return bound; }};
}

/// All elements within this share of the largest one.
inline Nearness within_share_of_largest(double share) {
  return {.bound = [](std::int64_t) { return 0.0; }, .of_largest = share};
}

/// One device's side of a case.
class Side {
 public:
  explicit Side(Device device) : stream_(device) {}
  Stream& stream() { return stream_; }
  Device device() const { return stream_.device(); }

  /// A tensor of f32, bf16 or f16 with these values.
  Tensor from(const std::vector<float>& values, Shape shape, DType dtype = DType::f32) {
    const Tensor t = stream_.empty(shape, dtype, Lifetime::run);
    check(std::int64_t(values.size()) == shape.count(), "parity: {} values for {}", values.size(), shape);
    dispatch<float, Bf16, Fp16>(dtype, "parity", [&]<class T>() {
      std::vector<T> rounded;
      for (const float v : values) rounded.push_back(from_float<T>(v));
      upload(stream_, rounded.data(), t);
    });
    return t;
  }
  Tensor gaussian(Shape shape, std::uint64_t seed, DType dtype = DType::f32, double scale = 1) {
    return from(testing::gaussian(std::size_t(shape.count()), seed, scale), shape, dtype);
  }
  template <class T>
  Tensor raw(const std::vector<T>& values, Shape shape) {
    const Tensor t = stream_.empty(shape, dtype_of<T>, Lifetime::run);
    return upload(stream_, values.data(), t), t;
  }
  /// Storage whose every byte is 0xCD before the op, so bytes that it does not write are visible.
  Tensor poisoned(Shape shape, DType dtype) {
    const Tensor t = stream_.empty(shape, dtype, Lifetime::run);
    const std::vector<unsigned char> bytes(t.bytes(), 0xCD);
    return upload(stream_, bytes.data(), t), t;
  }

  /// Declares a result, in the same order on both sides.
  void result(std::string name, const Tensor& t, Nearness how) { results_.push_back({std::move(name), t, std::move(how)}); }

  struct Result {
    std::string name;
    Tensor tensor;
    Nearness how;
  };
  const std::vector<Result>& results() const { return results_; }

 private:
  Stream stream_;
  std::vector<Result> results_;
};

/// A case of the program: its name, and its work on either device.
struct Case {
  std::string name;
  std::function<void(Side&)> run;
};
/// Registers a file's cases: a static object of this type in each *.parity.cpp.
struct Cases {
  explicit Cases(std::vector<Case> (*make)());
};

}  // namespace octet::parity
