#include "octet/train/step/weights.hpp"

#include <algorithm>
#include <cmath>

#include "octet/models/gguf/gguf.hpp"
#include "octet/models/hugging_face.hpp"
#include "octet/models/peft_folder.hpp"
#include "octet/nn/host_parameters.hpp"
#include "octet/parallel/long_work.hpp"
#include "octet/train/step/nonfinite.hpp"

namespace octet::train {

namespace {

// The first tensor with a value that is not finite, by its name in the files.
std::string nonfinite_tensor(const io::TensorFolder& files) {
  for (const std::string_view name : files.names()) {
    const io::TensorView tensor = *files.find(name);
    const bool number =
        tensor.dtype == io::StoredDType::f32 || tensor.dtype == io::StoredDType::bf16 || tensor.dtype == io::StoredDType::f16;
    const std::vector<float> values = number ? io::to_f32(tensor) : std::vector<float>();
    if (!std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); })) return std::string(name);
  }
  return "";
}

}  // namespace

nn::RouterBiases biases_of(Engine& e) { return {e.stream, e.model->routers(), e.model->shape().layers_with_experts()}; }

void load_weights(Engine& e, const std::string& folder) {
  models::read_hugging_face_shape(folder);  // errors of config.json come first
  load_weights(e, io::TensorFolder::open(folder));
}

namespace {

[[noreturn]] void refuse_nonfinite(const io::TensorFolder& files) {
  throw DataError(
      format("{}: tensor \"{}\" has values that are not finite, and so would be all that the model computes; fetch the weights again, or "
             "export them again",
             printable(files.folder()), printable(nonfinite_tensor(files))));
}

// One after the other, so that the host has the values of one. Those of other stages are read for the checksum.
void load_frozen(Engine& e, const io::TensorFolder& files, nn::RouterBiases& biases) {
  std::vector<std::unique_ptr<Parameter>> none;  // without memory, in place of the others
  std::vector<Parameter*> list;
  std::vector<std::ptrdiff_t> here;
  for (const StageParameters::NumberedParameter& p : e.stage_frozen.places()) {
    none.push_back(std::make_unique<Parameter>(p.whole->path, p.whole->shape, p.whole->init, p.whole->role));
    list.push_back(none.back().get()), here.push_back(p.own);
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::vector<float> values(std::size_t(list[i]->shape.count()), 0.0f);
    list[i]->value = Stored::plain({values.data(), list[i]->shape, DType::f32});
    models::load_hugging_face(files, e.model->shape(), biases.behind(list));
    if (!std::ranges::all_of(values, [](float x) { return std::isfinite(x); })) refuse_nonfinite(files);
    e.frozen.note(values);
    if (here[i] >= 0) e.frozen.set_values(e.stream, std::size_t(here[i]), values);
    list[i]->value = {};
  }
}

}  // namespace

void load_weights(Engine& e, const io::TensorFolder& files, const models::TrainedAdapters& merged) {
  check(!merged || e.frozen.list().empty(), "load_weights: adapters cannot be merged into frozen weights");
  bool finite = true;
  parallel::long_work(e.stream.device(), e.all_ranks(), [&] {
    nn::RouterBiases biases = biases_of(e);
    if (!e.frozen.list().empty()) {
      load_frozen(e, files, biases);
    } else {
      nn::UnreadMasters none;  // the files have all of them
      nn::HostParameters host(e.stream, e.parameters, none, e.axes.parts(), false);
      const std::vector<Parameter*> all = e.stage_parameters.completed(host.list());
      models::load_hugging_face(files, e.model->shape(), biases.behind(all));
      models::merge_adapters(merged, all);
      host.commit();
    }
    biases.commit();
    finite = biases.nonfinite().empty();
  });  // from here on, parameters are the device's again
  if (!nonfinite_parameter(e).empty() || !finite) refuse_nonfinite(files);
}

void load_scales(Engine& e, const io::TensorFolder& files) {
  using scaling::Operand;
  std::vector<scaling::QuantizerState> states;
  for (const models::LayerScales& s : models::layer_scales(files, e.model->shape(), biases_of(e).behind(e.own_parameters()))) {
    const std::string layer = s.parameter.substr(0, s.parameter.rfind('.'));
    for (const auto& [operand, descales] : {std::pair(Operand::activation, std::vector{s.input}), {Operand::weight, s.weights}}) {
      std::vector<float> scales;
      for (const float descale : descales) scales.push_back(1 / descale);
      states.push_back({.slot = {layer, operand, DType::e4m3, {}}, .maxima = {}, .scales = scales, .descales = descales});
    }
  }
  e.precision.set_quantizer_states(e.stream, states);
  e.parameters.mark_changed();
}

void require_weights(const io::TensorFolder& files, const EngineConfig& config) {
  EngineConfig bare{.shape = config.shape, .model = config.model, .precision = config.precision, .sequence = config.sequence};
  Engine engine(bare, Device::null, {});
  models::require_weights(files, config.shape, biases_of(engine).behind(engine.parameters.list()));
}

data::Checksum checksum_of_weights(Engine& e) {
  data::Checksummer sum;
  for (const Parameter* p : e.parameters.list()) {
    sum.add(std::as_bytes(std::span(p->path)));
    const HostCopy values(e.stream, p->value.codes);
    sum.add({values.as<std::byte>(), values.tensor().bytes()});
  }
  return sum.sum();
}

namespace {

// All parameters on the first stage of a pipeline: its own, and those of other stages, from the whole ones of each.
class WholeModel {
 public:
  // One rank of each stage sends.
  WholeModel(Engine& e, const nn::HostParameters& host) : list_(e.stage_parameters.completed(host.list())) {
    if (!e.axes.leads_stage()) return;
    std::vector<std::vector<float>> own(host.list().size());
    for (std::size_t i = 0; e.axes.pipeline().rank() > 0 && i < own.size(); ++i) {
      const Tensor values = host.list()[i]->value.values();
      own[i].assign(values.f32(), values.f32() + values.count());
    }
    values_ = e.stage_parameters.with_other_stages(e.stream, std::move(own));
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (values_[i].empty()) continue;
      const Parameter& p = *list_[i];
      received_.push_back(std::make_unique<Parameter>(p.path, p.shape, p.init, p.role));
      received_.back()->value = Stored::plain({values_[i].data(), p.shape, DType::f32});
      list_[i] = received_.back().get();
    }
  }
  const std::vector<Parameter*>& list() const { return list_; }

 private:
  std::vector<std::vector<float>> values_;
  std::vector<std::unique_ptr<Parameter>> received_;
  std::vector<Parameter*> list_;
};

}  // namespace

namespace {

// save(parameters) by the first rank, with those of all ranks.
template <class Save>
void save_whole(Engine& e, const Save& save) {
  const nn::HostParameters host(e.stream, e.parameters, e.sharding.weights(), e.axes.parts());
  const WholeModel whole(e, host);
  parallel::work_of_first(e.stream, e.all_ranks(), [&] { save(whole.list()); });
}

}  // namespace

void save_weights(Engine& e, const std::string& folder, const models::WeightForm& form, const models::Companions& companions) {
  const nn::RouterBiases biases = biases_of(e);
  save_whole(e, [&](const auto& list) { models::save_hugging_face(folder, e.model->shape(), biases.behind(list), form, companions); });
}

namespace {

Parameter& parameter_of(const std::vector<Parameter*>& list, const std::string& path) {
  const auto found = std::ranges::find(list, path, &Parameter::path);
  check(found != list.end(), "adapters: there is none of the name {}", path);
  return **found;
}

}  // namespace

void load_adapters(Engine& e, const models::AdapterConfig& config, const std::string& folder) {
  const models::TrainedAdapters read = models::read_peft_folder(folder, e.model->shape());
  std::vector<std::string> there, here;
  for (const models::AdapterValues& v : read.values) there.push_back(v.weight.parameter);
  for (const models::AdaptedWeight& w : models::adapted_weights(e.model->shape(), config)) here.push_back(w.parameter);
  if (read.config.rank != config.rank || read.config.alpha != config.alpha || there != here)
    throw ConfigError(
        format("lora.init: the adapters in {} have rank {}, alpha {} and {} weights, and lora.rank = {}, lora.alpha = {} and "
               "lora.targets give {}; leave these keys out, since the folder decides them",
               printable(folder), read.config.rank, read.config.alpha, there.size(), config.rank, config.alpha, here.size()));
  nn::UnreadMasters none;
  nn::HostParameters host(e.stream, e.parameters, none, e.axes.parts(), false);
  const auto fill = [&](const std::string& path, const std::vector<float>& values) {
    const auto found = std::ranges::find(host.list(), path, &Parameter::path);
    if (found != host.list().end()) std::ranges::copy(values, (*found)->value.values().f32());  // others are of another stage
  };
  for (const models::AdapterValues& v : read.values) fill(v.weight.a(), v.a), fill(v.weight.b(), v.b);
  host.commit();
  e.parameters.mark_changed();
}

void save_adapters(Engine& e, const models::AdapterConfig& config, const std::string& folder, const std::string& base) {
  save_whole(e, [&](const std::vector<Parameter*>& list) {
    const auto values = [&](const std::string& path) {
      const Tensor& t = parameter_of(list, path).value.values();
      return std::vector<float>(t.f32(), t.f32() + t.count());
    };
    models::TrainedAdapters out{.config = config, .values = {}};
    for (models::AdaptedWeight& w : models::adapted_weights(e.model->shape(), config)) {
      std::vector<float> a = values(w.a()), b = values(w.b());
      out.values.push_back({std::move(w), std::move(a), std::move(b)});
    }
    models::save_peft_folder(folder, out, e.model->shape(), base);
  });
}

void save_gguf(Engine& e, const std::string& path, io::GgufType type, const models::Companions& companions) {
  save_whole(e, [&](const auto& list) { models::save_gguf(path, e.model->shape(), list, type, companions); });
}

}  // namespace octet::train
