#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "octet/config/read.hpp"
#include "octet/ops/gemm/gemm.hpp"
#include "octet/python/bind.hpp"
#include "octet/python/layer_run.hpp"
#include "octet/python/operand_codec.hpp"

namespace octet::python {
namespace {

namespace nb = nanobind;
using scaling::Operand;

using Array = nb::ndarray<nb::c_contig>;
using MaybeArray = std::optional<Array>;
using Texts = std::vector<std::pair<std::string, std::string>>;
using Floats = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using Part = std::tuple<std::vector<std::int64_t>, std::string, bool>;

CodecConfig codec_config(const Texts& options) {
  CodecConfig c;
  config::Origins origins;
  for (const auto& [key, text] : options) config::set_key_text(c, key, text, "recipe", origins);
  return c;
}

DType values_named(const std::string& name) {
  if (name == "float32") return DType::f32;
  if (name == "bfloat16") return DType::bf16;
  throw ConfigError(format("a linear layer computes in float32 or bfloat16, got {}; convert its input, or use torch.autocast with bfloat16",
                           printable(name)));
}

// The type by which Python allocates it: codes and E8M0 are bytes.
std::string storage_name(DType t) { return t == DType::f32 ? "float32" : t == DType::bf16 ? "bfloat16" : "uint8"; }

DType dtype_of_array(const Array& a) {
  const nb::dlpack::dtype t = a.dtype();
  if (t.bits == 32 && t.code == std::uint8_t(nb::dlpack::dtype_code::Float)) return DType::f32;
  if (t.bits == 16 && t.code == std::uint8_t(nb::dlpack::dtype_code::Bfloat)) return DType::bf16;
  check(t.bits == 8, "linear: an array has {} bits per value; float32, bfloat16 and uint8 are taken", int(t.bits));
  return DType::u8;
}

Tensor tensor_of(const Array& a) {
  const auto n = [&](std::size_t i) { return std::int64_t(a.shape(i)); };
  check(a.ndim() == 1 || a.ndim() == 2, "linear: an array has {} dimensions; 1 or 2 are taken", a.ndim());
  return {a.data(), a.ndim() == 1 ? Shape{n(0)} : Shape{n(0), n(1)}, dtype_of_array(a)};
}

/// The codes of one operand in memory of the caller.
class Codes {
 public:
  Codes(std::pair<std::int64_t, std::int64_t> shape, const std::string& values, bool rows, bool cols, std::vector<Array> memory)
      : request_{{shape.first, shape.second}, values_named(values), rows, cols}, memory_(std::move(memory)) {
    for (const Array& a : memory_) tensors_.push_back(tensor_of(a));
  }
  const OperandCodec::Request& request() const { return request_; }
  std::span<const Tensor> tensors() const { return tensors_; }

 private:
  OperandCodec::Request request_;
  std::vector<Array> memory_;  // of which the tensors are views
  std::vector<Tensor> tensors_;
};

/// The three operands of a linear layer, and its products.
class LinearCodec {
 public:
  LinearCodec(std::uintptr_t queue, const std::string& device, int index, const Texts& options)
      : device_(device == "cpu" ? Device::cpu : Device::cuda),
        index_(index),
        executor_(Executor::of(device_, index)),
        config_(codec_config(options)),
        x_(executor_, queue, Operand::activation, config_),
        w_(executor_, queue, Operand::weight, config_),
        dy_(executor_, queue, Operand::gradient, config_) {}

  std::vector<Part> parts(const std::string& operand, const Codes& like) const {
    std::vector<Part> out;
    for (const OperandCodec::Part& p : named(operand).parts(like.request())) {
      std::vector<std::int64_t> shape;
      for (int i = 0; i < p.shape.rank; ++i) shape.push_back(p.shape[i]);
      out.emplace_back(shape, storage_name(p.dtype), p.of_columns);
    }
    return out;
  }

  void encode_weight(std::uintptr_t queue, const Array& w, const Codes& codes, bool records) {
    work(queue, [&](Stream& stream) { w_.encode(stream, tensor_of(w), codes.request(), codes.tensors(), records); });
  }

  void forward(std::uintptr_t queue, const Array& x, const Codes& codes, const Codes& w, const MaybeArray& bias, const Array& y,
               bool records) {
    work(queue, [&](Stream& stream) {
      x_.encode(stream, tensor_of(x), codes.request(), codes.tensors(), records);
      const QTensor a = x_.operands(codes.request(), codes.tensors()), b = w_.operands(w.request(), w.tensors());
      ops::gemm(stream, {.a = a.rows,
                         .b = b.rows,
                         .d = tensor_of(y),
                         .bias = bias ? tensor_of(*bias) : Tensor{},
                         .fast_accumulation = x_.fast_forward()});
    });
  }

  void backward(std::uintptr_t queue, const Array& dy, const Codes* x, const Codes* w, const MaybeArray& dx, const MaybeArray& dw,
                const MaybeArray& db, bool records) {
    work(queue, [&](Stream& stream) {
      const Tensor values = tensor_of(dy);
      const Scope scope(stream);
      if (dx || dw) {
        const QTensor q = dy_.encode(stream, values, {values.shape, values.dtype, dx.has_value(), dw.has_value()}, records);
        check((!dx || w != nullptr) && (!dw || x != nullptr), "linear: backward needs the codes of the other operand");
        if (dx) ops::gemm(stream, {.a = q.rows, .b = w_.operands(w->request(), w->tensors()).cols, .d = tensor_of(*dx)});
        if (dw) ops::gemm(stream, {.a = q.cols, .b = x_.operands(x->request(), x->tensors()).cols, .d = tensor_of(*dw)});
      }
      if (!db) return;
      clear(stream, tensor_of(*db));
      ops::add_column_sums(stream, values, tensor_of(*db));
    });
  }

  void end_step(std::uintptr_t queue) {
    work(queue, [&](Stream& stream) {
      for (OperandCodec* codec : all()) codec->end_step(stream);
    });
  }
  void reset(std::uintptr_t queue) {
    work(queue, [&](Stream& stream) {
      for (OperandCodec* codec : all()) codec->reset(stream);
    });
  }
  void settle() {
    for (OperandCodec* codec : all()) codec->settle();
  }

  // Views of the state, by "x.amax_history" and so on.
  static nb::dict state(nb::handle self) {
    auto& codec = nb::cast<LinearCodec&>(self);
    nb::dict out;
    for (OperandCodec* one : codec.all())
      for (const auto& [name, tensor] : one->state())
        out[(std::string(codec.name_of(one)) + "_" + name).c_str()] = codec.view(tensor, self);
    return out;
  }
  // f32 [1] of each operand: the maximum of this step. None where the recipe looks at no maxima of earlier steps.
  static nb::list maxima(nb::handle self) {
    auto& codec = nb::cast<LinearCodec&>(self);
    nb::list out;
    for (OperandCodec* one : codec.all())
      if (!one->state().empty()) out.append(codec.view(one->maximum(), self));
    return out;
  }

 private:
  void work(std::uintptr_t queue, const std::function<void(Stream&)>& f) {
    const nb::gil_scoped_release unlocked;
    executor_.run(queue, f);
  }
  std::vector<OperandCodec*> all() { return {&x_, &w_, &dy_}; }
  std::string_view name_of(const OperandCodec* one) const {
    return scaling::name(one == &x_ ? Operand::activation : one == &w_ ? Operand::weight : Operand::gradient);
  }
  const OperandCodec& named(const std::string& operand) const { return operand == "x" ? x_ : operand == "w" ? w_ : dy_; }
  nb::object view(const Tensor& t, nb::handle owner) const {
    std::vector<std::size_t> shape;
    for (int i = 0; i < t.shape.rank; ++i) shape.push_back(std::size_t(t.shape[i]));
    const int kind = device_ == Device::cpu ? nb::device::cpu::value : nb::device::cuda::value;
    return nb::cast(nb::ndarray<float>(t.data, shape.size(), shape.data(), owner, nullptr, nb::dtype<float>(), kind, index_));
  }

  Device device_;
  int index_;
  Executor& executor_;
  CodecConfig config_;
  OperandCodec x_, w_, dy_;
};

// Why a weight [out, in] cannot have these codes; "" if it can.
std::string unfit(const Texts& options, std::int64_t out, std::int64_t in) {
  const CodecConfig config = codec_config(options);
  const int multiple = eight_bit_recipe(config)->multiple_of();
  if (out % multiple == 0 && in % multiple == 0) return "";
  return format("{} x {} is not a multiple of {}, as 8-bit GEMMs need", out, in, multiple);
}

nb::object array_of(std::vector<float> values, std::initializer_list<std::size_t> shape) {
  auto* const owned = new std::vector<float>(std::move(values));
  const nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<float>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, float>(owned->data(), shape, owner));
}

nb::tuple run_layer(const Floats& x, const Floats& w, const Floats& dy, const std::optional<Floats>& bias, const Texts& options,
                    std::int64_t steps, const std::string& weights) {
  LayerRun layer{.config = codec_config(options), .steps = steps};
  layer.weights = values_named(weights) == DType::f32 ? Storage::f32 : Storage::bf16;
  const auto values = [](const Floats& a) { return std::vector<float>(a.data(), a.data() + a.size()); };
  if (x.ndim() != 2 || w.ndim() != 2 || dy.ndim() != 2 || x.shape(1) != w.shape(1) || dy.shape(1) != w.shape(0) ||
      dy.shape(0) != x.shape(0) || (bias && bias->size() != w.shape(0)))
    throw ConfigError("linear: x must be [T, in], weight [out, in], dy [T, out] and bias [out]");
  layer.tokens = std::int64_t(x.shape(0)), layer.in = std::int64_t(x.shape(1)), layer.out = std::int64_t(w.shape(0));
  layer.x = values(x), layer.w = values(w), layer.dy = values(dy);
  if (bias) layer.bias = values(*bias);
  LayerRun::Result r;
  {
    const nb::gil_scoped_release unlocked;
    Aside().run([&] { r = layer.run(); }, [] {});
  }
  const std::size_t T = x.shape(0), in = x.shape(1), out = w.shape(0);
  return nb::make_tuple(array_of(std::move(r.y), {T, out}), array_of(std::move(r.dx), {T, in}), array_of(std::move(r.dw), {out, in}),
                        bias ? array_of(std::move(r.db), {out}) : nb::none());
}

}  // namespace

void bind_linear(nb::module_& m) {
  nb::class_<Codes>(m, "Codes")
      .def(nb::init<std::pair<std::int64_t, std::int64_t>, const std::string&, bool, bool, std::vector<Array>>(), nb::arg("shape"),
           nb::arg("values"), nb::arg("rows"), nb::arg("cols"), nb::arg("memory"));
  nb::class_<LinearCodec>(m, "LinearCodec")
      .def(nb::init<std::uintptr_t, const std::string&, int, const Texts&>(), nb::arg("queue"), nb::arg("device"), nb::arg("index"),
           nb::arg("options"))
      .def("parts", &LinearCodec::parts, nb::arg("operand"), nb::arg("like"))
      .def("encode_weight", &LinearCodec::encode_weight, nb::arg("queue"), nb::arg("weight"), nb::arg("codes"), nb::arg("records"))
      .def("forward", &LinearCodec::forward, nb::arg("queue"), nb::arg("x"), nb::arg("codes"), nb::arg("weight"), nb::arg("bias").none(),
           nb::arg("y"), nb::arg("records"))
      .def("backward", &LinearCodec::backward, nb::arg("queue"), nb::arg("dy"), nb::arg("x").none(), nb::arg("weight").none(),
           nb::arg("dx").none(), nb::arg("dw").none(), nb::arg("db").none(), nb::arg("records"))
      .def("end_step", &LinearCodec::end_step, nb::arg("queue"))
      .def("reset", &LinearCodec::reset, nb::arg("queue"))
      .def("settle", &LinearCodec::settle)
      .def("state", &LinearCodec::state)
      .def("maxima", &LinearCodec::maxima);
  m.def("unfit", &unfit, nb::arg("options"), nb::arg("out"), nb::arg("in_"));
  m.def("run_layer", &run_layer, nb::arg("x"), nb::arg("weight"), nb::arg("dy"), nb::arg("bias").none(), nb::arg("options"),
        nb::arg("steps"), nb::arg("weights"));
}

}  // namespace octet::python
