#include "octet/train/weights.hpp"

#include "octet/models/hugging_face.hpp"
#include "octet/nn/host_parameters.hpp"

namespace octet::train {

void load_weights(Engine& e, const std::string& folder) {
  nn::HostParameters host(e.stream, e.parameters);
  load_hugging_face(folder, e.model->shape(), e.parameters);
  host.commit();
}

void save_weights(Engine& e, const std::string& folder, DType dtype) {
  const nn::HostParameters host(e.stream, e.parameters);
  save_hugging_face(folder, e.model->shape(), e.parameters, dtype);
}

}  // namespace octet::train
