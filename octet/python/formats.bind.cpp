#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "octet/base/error.hpp"
#include "octet/ops/quantize/quantize.hpp"
#include "octet/python/bind.hpp"

namespace octet::python {
namespace {

namespace nb = nanobind;

using Floats = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Codes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T, int rank>
using Array = nb::ndarray<nb::numpy, T, nb::ndim<rank>>;

template <class T>
struct Owned {
  explicit Owned(std::size_t n) : data(new T[n]), owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); }) {}
  T* data;
  nb::capsule owner;
};

/// Calls f with the format of that name.
template <class F>
void with_format(const std::string& name, F f) {
  if (name == "e4m3") return f(E4M3{});
  if (name == "e5m2") return f(E5M2{});
  throw ConfigError(format("format must be \"e4m3\" or \"e5m2\", got \"{}\"", printable(name)));
}

Array<std::uint8_t, 1> encode_array(const Floats& x, const std::string& format) {
  const Owned<std::uint8_t> out(x.size());
  with_format(format, [&]<class F>(F) {
    const nb::gil_scoped_release unlocked;
    const float* const from = x.data();
    for (std::size_t i = 0, n = x.size(); i < n; ++i) out.data[i] = encode<F>(from[i]);
  });
  return {out.data, {x.size()}, out.owner};
}

Array<float, 1> decode_array(const Codes& codes, const std::string& format) {
  const Owned<float> out(codes.size());
  with_format(format, [&]<class F>(F) {
    const nb::gil_scoped_release unlocked;
    const std::uint8_t* const from = codes.data();
    for (std::size_t i = 0, n = codes.size(); i < n; ++i) out.data[i] = decode<F>(from[i]);
  });
  return {out.data, {codes.size()}, out.owner};
}

ScaleRule rule_named(const std::string& name) {
  if (name == "quotient") return ScaleRule::quotient;
  if (name == "power_of_two") return ScaleRule::power_of_two;
  if (name == "e8m0") return ScaleRule::e8m0;
  throw ConfigError(format("scale must be \"quotient\", \"power_of_two\" or \"e8m0\", got \"{}\"", printable(name)));
}

std::int64_t blocks(std::int64_t size, int block) { return block == 0 ? 1 : (size + block - 1) / block; }

using Quantization = std::tuple<Array<std::uint8_t, 2>, Array<float, 2>, float>;

// Codes, descales of blocks in the order of the matrix, and the largest absolute value.
Quantization quantize_matrix(const Matrix& x, const std::string& format, const std::string& scale, int block_rows, int block_cols,
                             bool narrow) {
  const auto rows = std::int64_t(x.shape(0)), cols = std::int64_t(x.shape(1));
  if (rows == 0 || cols == 0) throw ConfigError("quantize: the matrix is empty; give one of at least one value");
  const ScaleBlock block{block_rows, block_cols};
  ops::QuantizeSpec spec{.rule = rule_named(scale), .rows = block, .cols = block};
  with_format(format, [&]<class F>(F) { spec.format = std::is_same_v<F, E4M3> ? DType::e4m3 : DType::e5m2; });
  const std::int64_t down = blocks(rows, block_rows), across = blocks(cols, block_cols);
  const Owned<std::uint8_t> codes{std::size_t(rows * cols)};
  const Owned<float> descales{std::size_t(down * across)};
  float amax = 0;
  {
    const nb::gil_scoped_release unlocked;
    Stream stream(Device::cpu);
    const Tensor values = stream.empty({rows, cols}, DType::f32);
    spec.amax = stream.zeros({1}, DType::f32);
    upload(stream, x.data(), values);
    ops::Sink sink = ops::make_sink(stream, spec, {.shape = {rows, cols}, .dtype = narrow ? DType::bf16 : DType::f32});
    ops::quantize(stream, values, sink);
    download(stream, sink.codes.rows.codes, codes.data);
    const Tensor& stored = sink.codes.rows.descales;
    const DescaleStride stride = descale_stride(block, stored.dtype, rows, cols);
    for (std::int64_t i = 0; i < down; ++i)
      for (std::int64_t j = 0; j < across; ++j)
        descales.data[i * across + j] = value_at(stored, i * stride.row_block + j * stride.col_block);
    download(stream, spec.amax, &amax);
  }
  return {Array<std::uint8_t, 2>(codes.data, {std::size_t(rows), std::size_t(cols)}, codes.owner),
          Array<float, 2>(descales.data, {std::size_t(down), std::size_t(across)}, descales.owner), amax};
}

}  // namespace

void bind_formats(nb::module_& m) {
  m.def("encode", &encode_array, nb::arg("x"), nb::arg("format"));
  m.def("decode", &decode_array, nb::arg("codes"), nb::arg("format"));
  m.def("quantize", &quantize_matrix, nb::arg("x"), nb::arg("format"), nb::arg("scale"), nb::arg("block_rows"), nb::arg("block_cols"),
        nb::arg("bf16"));
}

}  // namespace octet::python
