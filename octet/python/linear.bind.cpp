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

using Texts = std::vector<std::pair<std::string, std::string>>;
using Floats = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using Buffer = std::tuple<std::vector<std::int64_t>, std::string, bool>;
using Layout = OperandCodec::Layout;

/// Memory of the caller, who keeps it until work put into the queue is done. A number, since a conversion of each tensor would take the
/// host longer than all the rest of a call. 0: none.
using Address = std::uintptr_t;
using Addresses = std::vector<Address>;

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

Tensor tensor_at(Address address, Shape shape, DType dtype) {
  return address == 0 ? Tensor{} : Tensor{reinterpret_cast<void*>(address), shape, dtype};
}

std::vector<void*> pointers(const Addresses& addresses) {
  std::vector<void*> out;
  for (const Address a : addresses) out.push_back(reinterpret_cast<void*>(a));
  return out;
}

std::vector<Buffer> parts_of(const Layout& layout) {
  std::vector<Buffer> out;
  for (const OperandCodec::Buffer& p : layout.parts) {
    std::vector<std::int64_t> shape;
    for (int i = 0; i < p.shape.rank; ++i) shape.push_back(p.shape[i]);
    out.emplace_back(shape, storage_name(p.dtype), p.of_columns);
  }
  return out;
}

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

  Layout layout(const std::string& operand, std::int64_t rows, std::int64_t columns, const std::string& dtype, bool by_rows,
                bool by_columns) const {
    return named(operand).layout({{rows, columns}, values_named(dtype), by_rows, by_columns});
  }

  void encode(std::uintptr_t queue, Address x, const Layout& layout, const Addresses& memory, Address maximum, bool records) {
    work(queue, [&](Stream& stream) { fill(stream, x_, x, layout, memory, maximum, records); });
  }

  // Codes of x and w are made first, from values at these addresses, or are there already where that is 0.
  void forward(std::uintptr_t queue, Address x, const Layout& x_layout, const Addresses& x_memory, Address w, const Layout& w_layout,
               const Addresses& w_memory, Address bias, Address y, bool records) {
    const std::int64_t tokens = x_layout.request.shape[0], out = w_layout.request.shape[0];
    work(queue, [&](Stream& stream) {
      if (w != 0) fill(stream, w_, w, w_layout, w_memory, 0, records);
      if (x != 0) fill(stream, x_, x, x_layout, x_memory, 0, records);
      const QTensor a = x_layout.in(pointers(x_memory)), b = w_layout.in(pointers(w_memory));
      ops::gemm(stream, {.a = a.rows,
                         .b = b.rows,
                         .d = tensor_at(y, {tokens, out}, x_layout.request.values),
                         .bias = tensor_at(bias, {out}, DType::f32),
                         .fast_accumulation = x_.fast_forward()});
    });
  }

  // dy [T, out] and dx have the type `type`, dw has the weight's. Products whose address is 0 are not made, and need no codes. Codes of w
  // are made as in forward().
  void backward(std::uintptr_t queue, Address dy, std::int64_t tokens, std::int64_t out, const std::string& type, Address maximum,
                const Layout* x_layout, const Addresses& x_memory, Address w, const Layout* w_layout, const Addresses& w_memory, Address dx,
                Address dw, const std::string& dw_type, Address db, bool records) {
    const DType values = values_named(type);
    check((dx == 0 || w_layout != nullptr) && (dw == 0 || x_layout != nullptr), "linear: backward needs the codes of the other operand");
    work(queue, [&](Stream& stream) {
      const Tensor gradient = tensor_at(dy, {tokens, out}, values);
      const Scope scope(stream);
      if (w != 0) fill(stream, w_, w, *w_layout, w_memory, 0, records);
      if (dx != 0 || dw != 0) {
        const Tensor most = tensor_at(maximum, {1}, DType::f32);
        const QTensor q = dy_.encode(stream, gradient, OperandCodec::Request{gradient.shape, values, dx != 0, dw != 0}, records, most);
        if (dx != 0)
          ops::gemm(
              stream,
              {.a = q.rows, .b = w_layout->in(pointers(w_memory)).cols, .d = tensor_at(dx, {tokens, w_layout->request.shape[1]}, values)});
        if (dw != 0)
          ops::gemm(stream, {.a = q.cols,
                             .b = x_layout->in(pointers(x_memory)).cols,
                             .d = tensor_at(dw, {out, x_layout->request.shape[1]}, values_named(dw_type))});
      }
      if (db == 0) return;
      const Tensor sums = tensor_at(db, {out}, DType::f32);
      clear(stream, sums);
      ops::add_column_sums(stream, gradient, sums);
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
  static void fill(Stream& stream, OperandCodec& codec, Address values, const Layout& layout, const Addresses& memory, Address maximum,
                   bool records) {
    codec.encode(stream, tensor_at(values, layout.request.shape, layout.request.values), layout, pointers(memory), records,
                 tensor_at(maximum, {1}, DType::f32));
  }
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
  nb::class_<Layout>(m, "Layout").def_prop_ro("parts", &parts_of).def_prop_ro("at", [](const Layout& l) {
    return std::vector<int>(l.at.begin(), l.at.end());
  });
  nb::class_<LinearCodec>(m, "LinearCodec")
      .def(nb::init<std::uintptr_t, const std::string&, int, const Texts&>(), nb::arg("queue"), nb::arg("device"), nb::arg("index"),
           nb::arg("options"))
      .def("layout", &LinearCodec::layout, nb::arg("operand"), nb::arg("rows"), nb::arg("columns"), nb::arg("dtype"), nb::arg("by_rows"),
           nb::arg("by_columns"))
      .def("encode", &LinearCodec::encode, nb::arg("queue"), nb::arg("x"), nb::arg("layout"), nb::arg("memory"), nb::arg("maximum"),
           nb::arg("records"))
      .def("forward", &LinearCodec::forward, nb::arg("queue"), nb::arg("x"), nb::arg("x_layout"), nb::arg("x_memory"), nb::arg("weight"),
           nb::arg("weight_layout"), nb::arg("weight_memory"), nb::arg("bias"), nb::arg("y"), nb::arg("records"))
      .def("backward", &LinearCodec::backward, nb::arg("queue"), nb::arg("dy"), nb::arg("tokens"), nb::arg("out"), nb::arg("dtype"),
           nb::arg("maximum"), nb::arg("x_layout").none(), nb::arg("x_memory"), nb::arg("weight"), nb::arg("weight_layout").none(),
           nb::arg("weight_memory"), nb::arg("dx"), nb::arg("dw"), nb::arg("dw_type"), nb::arg("db"), nb::arg("records"))
      .def("end_step", &LinearCodec::end_step, nb::arg("queue"))
      .def("reset", &LinearCodec::reset, nb::arg("queue"))
      .def("settle", &LinearCodec::settle)
      .def("state", &LinearCodec::state)
      .def("maxima", &LinearCodec::maxima);
  m.def(
      "keeps_state", [](const Texts& options) { return facts_of(codec_config(options)).keeps_state; }, nb::arg("options"));
  m.def(
      "needs_maximum", [](const Texts& options) { return facts_of(codec_config(options)).needs_maximum; }, nb::arg("options"));
  m.def("unfit", &unfit, nb::arg("options"), nb::arg("out"), nb::arg("in_"));
  m.def("run_layer", &run_layer, nb::arg("x"), nb::arg("weight"), nb::arg("dy"), nb::arg("bias").none(), nb::arg("options"),
        nb::arg("steps"), nb::arg("weights"));
}

}  // namespace octet::python
