#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "octet/python/bind.hpp"
#include "octet/python/open_model.hpp"
#include "octet/python/wait.hpp"
#include "octet/train/step/generate.hpp"

namespace octet::python {
namespace {

namespace nb = nanobind;

using Ids = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Logits = nb::ndarray<nb::numpy, float, nb::ndim<3>>;

// An array that owns its values.
Logits array_of(std::vector<float> values, std::size_t rows, std::size_t length, std::size_t columns) {
  auto* const owned = new std::vector<float>(std::move(values));
  const nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<float>*>(p); });
  return {owned->data(), {rows, length, columns}, owner};
}

std::unique_ptr<OpenModel> opened(const std::string& folder, std::int64_t step, const std::string& recipe, const std::string& head,
                                  bool residual, const std::string& device, std::int64_t threads, std::int64_t sequence) {
  trained::TrainedModel wish;
  wish.folder = folder, wish.step = step, wish.precision.recipe = recipe, wish.head = head, wish.device = device, wish.threads = threads;
  wish.quantize_residual = residual;
  auto model = std::make_unique<OpenModel>(std::move(wish), sequence);
  wait_for(model->aside(), [&] { model->open(); });
  return model;
}

Logits logits(OpenModel& model, const Ids& ids) {
  std::vector<float> out;
  const std::span<const std::int32_t> all(ids.data(), ids.size());
  wait_for(model.aside(), [&] { out = model.logits(all, std::int64_t(ids.shape(0))); });
  return array_of(std::move(out), ids.shape(0), ids.shape(1), std::size_t(model.vocabulary()));
}

std::vector<std::vector<std::int32_t>> generate(OpenModel& model, const std::vector<std::vector<std::int32_t>>& texts, std::int64_t tokens,
                                                double temperature, std::int64_t top_k, double top_p, std::uint64_t seed,
                                                double repetition_penalty, const std::vector<std::string>& stops, bool codes) {
  std::vector<std::vector<std::int32_t>> out;
  wait_for(model.aside(), [&] {
    out = model.generate(texts, tokens, {temperature, top_k, top_p, seed, repetition_penalty}, stops, codes);
  });
  return out;
}

std::pair<double, std::int64_t> evaluate(OpenModel& model, const trained::EvalSet& set, const std::vector<std::string>& given,
                                         const std::string& recipe, std::int64_t calibration) {
  train::Evaluation out;
  wait_for(model.aside(), [&] { out = model.evaluate(set, given, recipe, calibration); });
  if (!out.whole) throw Error(ExitCode::interrupted, "evaluate: stopped by another call that Ctrl-C ended");
  return {out.loss, out.tokens};
}

// The value of a parameter in the engine's own memory, which lives as long as `owner`.
nb::object view_of(const Parameter& p, Device device, nb::handle owner) {
  const Tensor& values = p.value.values();
  std::vector<std::size_t> shape;
  for (int i = 0; i < values.shape.rank; ++i) shape.push_back(std::size_t(values.shape[i]));
  if (device == Device::cpu) return nb::cast(nb::ndarray<nb::numpy, float>(values.data, shape.size(), shape.data(), owner));
  return nb::cast(nb::ndarray<float>(values.data, shape.size(), shape.data(), owner, nullptr, nb::dtype<float>(), nb::device::cuda::value));
}

nb::dict parameters(nb::handle self) {
  OpenModel& model = nb::cast<OpenModel&>(self);
  nb::dict out;
  model.share_values();
  for (const Parameter* p : model.engine().parameters.list()) out[p->path.c_str()] = view_of(*p, model.engine().stream.device(), self);
  return out;
}

// Text as Python's bytes, since ids may end in the middle of a character.
nb::bytes decoded(OpenModel& model, const std::vector<std::int32_t>& ids) {
  const std::string text = model.tokenizer().decode(ids);
  return nb::bytes(text.data(), text.size());
}

std::vector<std::int32_t> encoded(OpenModel& model, const nb::bytes& text, bool document) {
  const std::string plain(text.c_str(), text.size());
  if (document) return train::prompt_ids(model.tokenizer(), plain);
  std::vector<std::int32_t> ids;
  model.tokenizer().encode(plain, ids);
  return ids;
}

trained::EvalSet eval_set(const std::string& data, std::int64_t sequence, std::int64_t batch, std::int64_t tokens, double held_out,
                          bool all, bool document_mask) {
  trained::EvalSet set;
  set.data = data, set.sequence = sequence, set.batch = batch, set.tokens = tokens, set.fraction = held_out, set.all = all;
  set.document_mask = document_mask;
  return set;
}

}  // namespace

void bind_models(nb::module_& m) {
  nb::class_<trained::EvalSet>(m, "EvalSet");
  m.def("eval_set", &eval_set);
  m.def("open_model", &opened, nb::arg("folder"), nb::arg("step"), nb::arg("recipe"), nb::arg("head"), nb::arg("residual"),
        nb::arg("device"), nb::arg("threads"), nb::arg("sequence"));
  nb::class_<OpenModel>(m, "OpenModel")
      .def_prop_ro("vocabulary", &OpenModel::vocabulary)
      .def_prop_ro("max_sequence", &OpenModel::max_sequence)
      .def_prop_ro("sequence", &OpenModel::sequence)
      .def_prop_ro("empty_context", [](OpenModel& model) { return model.tokenizer().empty_context(); })
      .def("logits", &logits, nb::arg("ids"))
      .def("generate", &generate, nb::arg("texts"), nb::arg("tokens"), nb::arg("temperature"), nb::arg("top_k"), nb::arg("top_p"),
           nb::arg("seed"), nb::arg("repetition_penalty"), nb::arg("stops"), nb::arg("codes"))
      .def("evaluate", &evaluate, nb::arg("set"), nb::arg("given"), nb::arg("recipe"), nb::arg("calibration"))
      .def("parameters", &parameters)
      .def("encode", &encoded, nb::arg("text"), nb::arg("document"))
      .def("decode", &decoded, nb::arg("ids"));
}

}  // namespace octet::python
