#include "octet/train/step/weights.hpp"

#include <algorithm>
#include <cmath>

#include "octet/models/hugging_face.hpp"
#include "octet/nn/host_parameters.hpp"
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

void load_weights(Engine& e, const std::string& folder) {
  models::read_hugging_face_shape(folder);  // errors of config.json come first
  load_weights(e, io::TensorFolder::open(folder));
}

void load_weights(Engine& e, const io::TensorFolder& files) {
  {
    nn::HostParameters host(e.stream, e.parameters, nullptr, e.partition(), false);  // all of them are read
    models::load_hugging_face(files, e.model->shape(), host.list());
    host.commit();
  }  // from here on, parameters are the device's again
  if (nonfinite_parameter(e).empty()) return;
  throw DataError(
      format("{}: tensor \"{}\" has values that are not finite, and so would be all that the model computes; fetch the weights again, or "
             "export them again",
             printable(files.folder()), printable(nonfinite_tensor(files))));
}

void require_weights(const io::TensorFolder& files, const EngineConfig& config) {
  EngineConfig bare{.shape = config.shape, .model = config.model, .precision = config.precision, .sequence = config.sequence};
  const Engine engine(bare, Device::null, {});
  models::require_weights(files, config.shape, engine.parameters.list());
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

void save_weights(Engine& e, const std::string& folder, DType dtype, const models::Companions& companions) {
  const nn::HostParameters host(e.stream, e.parameters, e.master_weights(), e.partition());
  if (e.all_ranks().rank() > 0) return;
  models::save_hugging_face(folder, e.model->shape(), host.list(), dtype, companions);
}

}  // namespace octet::train
