#include "octet/train/weights.hpp"

#include "octet/models/hugging_face.hpp"
#include "octet/nn/host_parameters.hpp"

namespace octet::train {

namespace {

// `from`: a folder's name, or its open files.
template <class From>
void load_from(Engine& e, const From& from) {
  nn::HostParameters host(e.stream, e.parameters);
  load_hugging_face(from, e.model->shape(), e.parameters);
  host.commit();
}

}  // namespace

void load_weights(Engine& e, const std::string& folder) { load_from(e, folder); }
void load_weights(Engine& e, const io::TensorFolder& files) { load_from(e, files); }

void save_weights(Engine& e, const std::string& folder, DType dtype) {
  const nn::HostParameters host(e.stream, e.parameters);
  save_hugging_face(folder, e.model->shape(), e.parameters, dtype);
}

}  // namespace octet::train
